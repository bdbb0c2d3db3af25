// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the walk over the registry and the opening of pinned rings. Nothing is made, changed or
 * removed here; who wants that needs the daemon.
 */
#include "client/direct.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "client/bpf.h"
#include "client/event.h"
#include "client/public.h"
#include "client/textfile.h"
#include "proto/places.h"

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
				   "perfpersistd has not run since the system was booted",
				   registry);
	return 0;
}

/* Half-made and half-removed things begin with a '+'. */
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

/* ── Listing ────────────────────────────────────────────────────────────────────────────── */

static int list_namespace(const char *registry, int at, const char *ns, struct client_infos *infos)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int error;

	error = open_dir(at, ns, &dir);
	if (error == -ENOTDIR)
		return 0;
	if (error < 0)
		return error;
	while ((entry = readdir(dir))) {
		_cleanup_close_ int event_fd = -EBADF;
		struct perfpersist_info info;

		if (is_hidden(entry->d_name))
			continue;
		event_fd = openat(dirfd(dir), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		error = event_fd < 0 ? -errno : textfile_read_event(event_fd, &info);
		if (error == -ENOENT || error == -ENOTDIR) /* deleted meanwhile */
			continue;
		if (error < 0)
			return cannot_read(error, registry, ns, entry->d_name);
		error = client_infos_add(infos, &info);
		if (error < 0)
			return error;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = ((const struct perfpersist_info *)a)->id;
	uint64_t y = ((const struct perfpersist_info *)b)->id;

	return (x > y) - (x < y);
}

static int list_all(const char *registry, DIR *root, struct client_infos *infos)
{
	struct dirent *entry;

	while ((entry = readdir(root))) {
		int error;

		if (is_hidden(entry->d_name))
			continue;
		error = list_namespace(registry, dirfd(root), entry->d_name, infos);
		if (error == -ENOENT) /* its last event was deleted meanwhile */
			continue;
		if (error < 0)
			return error;
	}
	return 0;
}

static int list(const char *registry, const char *ns, struct client_infos *infos)
{
	_cleanup_closedir_ DIR *root = NULL;
	int error;

	if (*ns && !client_name_is_valid(ns))
		return client_fail(-EINVAL, "\"%s\" cannot be the name of a namespace", ns);
	error = open_dir(AT_FDCWD, registry, &root);
	if (error < 0)
		return client_fail(error, "cannot read %s: %s", registry, strerror(-error));
	error = *ns ? list_namespace(registry, dirfd(root), ns, infos)
		    : list_all(registry, root, infos);
	if (error == -ENOENT)
		return client_fail(error,
				   "there is no namespace %s in %s: `perfctl list --direct` shows "
				   "those that are there",
				   ns, registry);
	if (error == 0 && infos->n)
		qsort(infos->v, infos->n, sizeof(*infos->v), compare_ids);
	return error;
}

/* ── One event ──────────────────────────────────────────────────────────────────────────── */

/* The path of the event's directory, and what its texts say. */
static int find_event(const char *registry, const struct pp_msg_name *which, char *path,
		      size_t size, struct perfpersist_info *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char name[24];
	int error, n;

	if (which->id) {
		snprintf(name, sizeof(name), "%" PRIu64, which->id);
		n = snprintf(path, size, "%s/" PP_BY_ID "/%s", registry, name);
	} else {
		if (!client_name_is_valid(which->ns) || !client_name_is_valid(which->name))
			return client_fail(-EINVAL, "\"%s/%s\" cannot be the name of an event",
					   which->ns, which->name);
		n = snprintf(path, size, "%s/%s/%s", registry, which->ns, which->name);
	}
	if (n < 0 || (size_t)n >= size)
		return client_fail(-ENAMETOOLONG, "the path of the registry %s is too long",
				   registry);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = fd < 0 ? -errno : textfile_read_event(fd, ret);
	if (error < 0)
		return cannot_read(error, registry, which->id ? PP_BY_ID : which->ns,
				   which->id ? name : which->name);
	return 0;
}

static int show(const char *registry, struct request *r)
{
	struct perfpersist_info info;
	char path[PATH_MAX];
	int error;

	error = find_event(registry, &r->body.name, path, sizeof(path), &info);
	return error < 0 ? error : client_infos_add(&r->infos, &info);
}

/* "cpu12" → 12; negative: it is another of the event's files. */
static int ring_cpu(const char *name)
{
	char *end;
	unsigned long cpu;

	if (strncmp(name, "cpu", 3) != 0 || name[3] < '0' || name[3] > '9')
		return -EINVAL;
	cpu = strtoul(name + 3, &end, 10);
	return *end || cpu > INT_MAX ? -EINVAL : (int)cpu;
}

static int add_pin(struct perfpersist_event *e, const char *dir, const char *name, int cpu)
{
	char path[PATH_MAX + NAME_MAX + 2];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = client_bpf_open_pin(path);
	if (fd < 0)
		return client_fail(fd, "cannot open the pinned ring %s: %s", path, strerror(-fd));
	return client_event_add(e, fd, cpu, 0);
}

static int compare_rings(const void *a, const void *b)
{
	uint32_t x = ((const struct client_ring *)a)->header.cpu;
	uint32_t y = ((const struct client_ring *)b)->header.cpu;

	return (x > y) - (x < y);
}

static int open_rings(const char *registry, struct request *r)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	struct perfpersist_info info;
	struct dirent *entry;
	char path[PATH_MAX];
	int error;

	error = find_event(registry, &r->body.open.which, path, sizeof(path), &info);
	if (error < 0)
		return error;
	error = open_dir(AT_FDCWD, path, &dir);
	if (error < 0)
		return cannot_read(error, registry, info.ns, info.name);
	error = client_event_new(&info, &e);
	while (error >= 0 && (entry = readdir(dir))) {
		int cpu = ring_cpu(entry->d_name);

		if (cpu >= 0)
			error = add_pin(e, path, entry->d_name, cpu);
	}
	if (error < 0)
		return error;
	if (e->n)
		qsort(e->rings, e->n, sizeof(*e->rings), compare_rings);
	r->event = TAKE_PTR(e);
	return 0;
}

int direct_run(const char *registry, struct request *r)
{
	switch (r->op) {
	case PP_OP_LIST:
		return list(registry, r->body.list.ns, &r->infos);
	case PP_OP_SHOW:
		return show(registry, r);
	case PP_OP_OPEN:
		return open_rings(registry, r);
	default:
		return client_fail(
			-EOPNOTSUPP,
			"cannot do that from the pins in %s: only perfpersistd can; start "
			"it, and leave --direct out",
			registry);
	}
}
