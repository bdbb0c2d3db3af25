// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks the registry and opens pinned rings. Makes, changes and removes nothing: that needs the
 * daemon. */
#include "client/local/direct.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "client/local/ids.h"
#include "client/local/sideband-direct.h"
#include "client/local/textfile.h"
#include "client/public.h"
#include "client/rings/bpf.h"
#include "client/rings/event.h"
#include "proto/places.h"

/* How often to restart if the rings are replaced while they are opened. */
#define OPEN_RESTARTS_MAX 5

int direct_check(const char *registry)
{
	if (geteuid() != 0)
		return client_fail(-EACCES,
				   "cannot read the pins below %s: only root may; ask "
				   "perfpersistd instead, without --direct",
				   registry);
	if (access(registry, R_OK | X_OK) < 0)
		return client_fail(-errno,
				   "cannot read the pins below %s: %m; this instance of "
				   "perfpersistd has not run since the system was booted, or has "
				   "ended without an event",
				   registry);
	return 0;
}

/* Unfinished and half-removed entries begin with a '+'. */
static bool is_hidden(const char *name)
{
	return name[0] == '+' || name[0] == '.' || !strcmp(name, PP_BY_ID);
}

static int open_dir(int at, const char *path, DIR **ret)
{
	_cleanup_close_ int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	TAKE_FD(fd);
	*ret = d;
	return 0;
}

static int cannot_read(int error, const char *registry, const char *ns, const char *name)
{
	if (error == -ENOENT)
		return client_fail(error,
				   "there is no event %s/%s in %s: `perfctl list --direct` "
				   "shows those that are there",
				   ns, name, registry);
	if (error == -EBADMSG)
		return client_fail(error,
				   "cannot read %s/%s/%s/info: it is not an event's "
				   "description",
				   registry, ns, name);
	return client_fail(error, "cannot read %s/%s/%s: %s", registry, ns, name, strerror(-error));
}

/*
 * Reads the event NAME in the open directory of NS. Its texts are those of the oldest name that the
 * rings have, with this name's own fields put in.
 */
static int read_event(const char *registry, int ns_dir, const char *ns, const char *name,
		      struct ids *ids, struct perfpersist_info *ret)
{
	_cleanup_close_ int fd = openat(ns_dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct pp_name_record *record;
	int r;

	if (fd < 0)
		return -errno;
	r = textfile_read_event(fd, ret);
	if (r >= 0)
		client_away_fill(ret);
	if (r < 0 || (!strcmp(ret->ns, ns) && !strcmp(ret->name, name)))
		return r;
	r = ids_by_name(ids, registry, ns, name, &record);
	if (r < 0)
		return r;
	ret->shares = ret->id;
	ret->memory = 0;
	ret->id = record->id;
	ret->owner = record->owner;
	ret->group = record->group;
	ret->mode = record->mode;
	ret->creator = record->creator;
	ret->flags &= ~PERFPERSIST_CONFIGURED;
	ret->flags |= record->flags & PERFPERSIST_CONFIGURED;
	memcpy(ret->ns, record->ns, sizeof(record->ns));
	memcpy(ret->name, record->name, sizeof(record->name));
	return 0;
}

/* ── Listing ────────────────────────────────────────────────────────────────────────────── */

static int list_namespace(const char *registry, int at, const char *ns, struct ids *ids,
			  struct client_infos *infos)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = open_dir(at, ns, &dir);
	if (r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	while ((entry = readdir(dir))) {
		struct perfpersist_info info;

		if (is_hidden(entry->d_name))
			continue;
		r = read_event(registry, dirfd(dir), ns, entry->d_name, ids, &info);
		if (r == -ENOENT || r == -ENOTDIR) /* deleted meanwhile */
			continue;
		if (r < 0)
			return cannot_read(r, registry, ns, entry->d_name);
		r = client_infos_add(infos, &info);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = ((const struct perfpersist_info *)a)->id;
	uint64_t y = ((const struct perfpersist_info *)b)->id;

	return (x > y) - (x < y);
}

static int list_all(const char *registry, DIR *root, struct ids *ids, struct client_infos *infos)
{
	struct dirent *entry;

	while ((entry = readdir(root))) {
		int r;

		if (is_hidden(entry->d_name))
			continue;
		r = list_namespace(registry, dirfd(root), entry->d_name, ids, infos);
		if (r == -ENOENT) /* its last event was deleted meanwhile */
			continue;
		if (r < 0)
			return r;
	}
	return 0;
}

static int list(const char *registry, const char *ns, struct client_infos *infos)
{
	_cleanup_closedir_ DIR *root = NULL;
	_cleanup_(ids_done) struct ids ids = { .v = NULL };
	int r;

	if (*ns && !client_name_is_valid(ns))
		return client_fail(-EINVAL, "\"%s\" cannot be the name of a namespace", ns);
	r = open_dir(AT_FDCWD, registry, &root);
	if (r < 0)
		return client_fail(r, "cannot read %s: %s", registry, strerror(-r));
	r = *ns ? list_namespace(registry, dirfd(root), ns, &ids, infos)
		: list_all(registry, root, &ids, infos);
	if (r == -ENOENT)
		return client_fail(r,
				   "there is no namespace %s in %s: `perfctl list --direct` shows "
				   "those that are there",
				   ns, registry);
	if (r == 0 && infos->n)
		qsort(infos->v, infos->n, sizeof(*infos->v), compare_ids);
	return r;
}

/* ── One event ──────────────────────────────────────────────────────────────────────────── */

static int resolve_id(const char *registry, uint64_t id, struct ids *ids, struct pp_msg_name *ret)
{
	const struct pp_name_record *record;
	int r = ids_by_id(ids, registry, id, &record);

	if (r == -ENOENT)
		return client_fail(r,
				   "there is no event with the id %" PRIu64 " in %s: `perfctl list "
				   "--direct` shows those that are there",
				   id, registry);
	if (r < 0)
		return client_fail(r, "cannot read %s/" PP_BY_ID ": %s", registry, strerror(-r));
	memcpy(ret->ns, record->ns, sizeof(ret->ns));
	memcpy(ret->name, record->name, sizeof(ret->name));
	return 0;
}

/* Finds the requested event, its description and the path of its directory. */
static int find_event(const char *registry, const struct pp_msg_name *which, char *path,
		      size_t size, struct perfpersist_info *ret)
{
	_cleanup_(ids_done) struct ids ids = { .v = NULL };
	_cleanup_close_ int ns_dir = -EBADF;
	struct pp_msg_name it = *which;
	int r = which->id ? resolve_id(registry, which->id, &ids, &it) : 0, n;

	if (r < 0)
		return r;
	if (!client_name_is_valid(it.ns) || !client_name_is_valid(it.name))
		return client_fail(-EINVAL, "\"%s/%s\" cannot be the name of an event", it.ns,
				   it.name);
	n = snprintf(path, size, "%s/%s", registry, it.ns);
	if (n < 0 || (size_t)n + PP_NAME_SIZE >= size)
		return client_fail(-ENAMETOOLONG, "the path of the registry %s is too long",
				   registry);
	ns_dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = ns_dir < 0 ? -errno : read_event(registry, ns_dir, it.ns, it.name, &ids, ret);
	if (r < 0)
		return cannot_read(r, registry, it.ns, it.name);
	snprintf(path + n, size - (size_t)n, "/%s", it.name);
	return 0;
}

static int show(const char *registry, struct request *req)
{
	struct perfpersist_info info;
	char path[PATH_MAX];
	int r;

	r = find_event(registry, &req->body.name, path, sizeof(path), &info);
	return r < 0 ? r : client_infos_add(&req->answer.infos, &info);
}

int direct_ring_cpu(const char *name)
{
	char *end;
	unsigned long cpu;

	if (strncmp(name, "cpu", 3) != 0 || name[3] < '0' || name[3] > '9' ||
	    (name[3] == '0' && name[4]))
		return -EINVAL;
	cpu = strtoul(name + 3, &end, 10);
	return *end || cpu > INT_MAX ? -EINVAL : (int)cpu;
}

/* Adds the ring of a CPU, or (cpu < 0) the catalog. -ESTALE: the pins have been replaced. */
static int add_pin(struct perfpersist_event *e, const char *dir, const char *name, int cpu)
{
	char path[PATH_MAX + NAME_MAX + 2];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = client_bpf_open_pin(path);
	if (fd < 0)
		return client_fail(fd == -ENOENT ? -ESTALE : fd, "cannot open the pin %s: %s", path,
				   strerror(-fd));
	return cpu < 0 ? client_event_add_catalog(e, fd, 0) : client_event_add(e, fd, cpu, 0);
}

static int compare_rings(const void *a, const void *b)
{
	uint32_t x = ((const struct client_ring *)a)->header.cpu;
	uint32_t y = ((const struct client_ring *)b)->header.cpu;

	return (x > y) - (x < y);
}

int direct_complete(struct perfpersist_event *e)
{
	int r = client_event_complete(e);

	if (r >= 0 && e->n)
		qsort(e->rings, e->n, sizeof(*e->rings), compare_rings);
	return r;
}

static int add_pins(struct perfpersist_event *e, const char *path, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	while (r >= 0 && (entry = readdir(dir))) {
		int cpu = direct_ring_cpu(entry->d_name);

		if (cpu >= 0 || !strcmp(entry->d_name, "catalog"))
			r = add_pin(e, path, entry->d_name, cpu);
	}
	return r < 0 ? r : direct_complete(e);
}

static int open_once(const char *registry, struct request *req)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	struct perfpersist_info info;
	char path[PATH_MAX];
	int r;

	r = find_event(registry, &req->body.open.which, path, sizeof(path), &info);
	if (r < 0)
		return r;
	r = open_dir(AT_FDCWD, path, &dir);
	if (r < 0)
		return cannot_read(r, registry, info.ns, info.name);
	r = client_event_new(&info, &e);
	if (r >= 0)
		r = add_pins(e, path, dir);
	if (r < 0)
		return r;
	req->answer.event = TAKE_PTR(e);
	return 0;
}

/* A resize may replace the pins while they are opened. */
static int open_rings(const char *registry, struct request *req)
{
	int r;

	if (req->body.open.flags & PP_OPEN_COPY)
		return client_fail(-EOPNOTSUPP,
				   "cannot make copies of rings from the pins in %s: only "
				   "perfpersistd can; start it, and leave --direct out",
				   registry);
	for (int i = 0; i <= OPEN_RESTARTS_MAX; i++) {
		r = open_once(registry, req);
		if (r != -ESTALE)
			return r;
	}
	return client_fail(-EAGAIN,
			   "cannot open the event: its rings change all the time; try again");
}

int direct_run(const char *registry, struct request *req)
{
	switch (req->op) {
	case PP_OP_LIST:
		return list(registry, req->body.list.ns, &req->answer.infos);
	case PP_OP_SHOW:
		return show(registry, req);
	case PP_OP_OPEN:
		return open_rings(registry, req);
	case PP_OP_CPUS:
		return client_away_direct(registry, &req->answer.away);
	case PP_OP_SIDEBAND:
		return sideband_direct(registry, &req->body.sideband, &req->answer);
	default:
		return client_fail(
			-EOPNOTSUPP,
			"cannot do that from the pins in %s: only perfpersistd can; start "
			"it, and leave --direct out",
			registry);
	}
}
