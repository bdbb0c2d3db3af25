// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks a save, from its directory to its events' texts. saved-rings.c opens an event's rings. */
#include "client/local/saved.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "client/local/saved-file.h"
#include "client/local/saved-rings.h"
#include "client/local/saved-sideband.h"
#include "client/local/textfile.h"
#include "client/public.h"

struct save {
	const char *path;
	int fd;
};

static int cannot_read(const struct save *s, const char *ns, const char *name, int error)
{
	if (error == -ENOENT)
		return client_fail(error,
				   "there is no event %s/%s in the save %s: `perfctl --saved=%s "
				   "list` shows those that are there",
				   ns, name, s->path, s->path);
	if (error == -EBADMSG)
		return client_fail(error,
				   "cannot read %s/%s/%s: its info or stat is not that of a saved "
				   "event, or is damaged or cut off",
				   s->path, ns, name);
	return client_fail(error, "cannot read %s/%s/%s: %s", s->path, ns, name,
			   saved_file_error(error));
}

static int open_stream(int at, const char *name, DIR **ret)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);
	DIR *d;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	TAKE_FD(fd);
	*ret = d;
	return 0;
}

/* An event's place decides its name. */
static int read_event(int ns_dir, const char *ns, const char *name, struct perfpersist_info *ret)
{
	_cleanup_close_ int fd = saved_dir_open(ns_dir, name);
	int r = fd < 0 ? fd : textfile_read_saved(fd, ret);

	if (r < 0)
		return r;
	memset(ret->ns, 0, sizeof(ret->ns));
	memset(ret->name, 0, sizeof(ret->name));
	memcpy(ret->ns, ns, strnlen(ns, sizeof(ret->ns) - 1));
	memcpy(ret->name, name, strnlen(name, sizeof(ret->name) - 1));
	return 0;
}

/* ── Listing ────────────────────────────────────────────────────────────────────────────── */

/* Not an event, or not readable for us. */
static bool is_skipped(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EACCES;
}

static int list_namespace(const struct save *s, const char *ns, struct client_infos *infos)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r = open_stream(s->fd, ns, &dir);

	while (r >= 0 && (entry = readdir(dir))) {
		struct perfpersist_info info;

		if (!client_name_is_valid(entry->d_name))
			continue;
		r = read_event(dirfd(dir), ns, entry->d_name, &info);
		if (r >= 0)
			r = client_infos_add(infos, &info);
		else
			r = is_skipped(r) ? 0 : cannot_read(s, ns, entry->d_name, r);
	}
	return r;
}

static int list_all(const struct save *s, struct client_infos *infos)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r = open_stream(s->fd, ".", &dir);

	if (r < 0)
		return client_fail(r, "cannot read the save %s: %s", s->path, strerror(-r));
	while (r >= 0 && (entry = readdir(dir))) {
		if (!client_name_is_valid(entry->d_name))
			continue;
		r = list_namespace(s, entry->d_name, infos);
		if (is_skipped(r))
			r = 0;
	}
	return r;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = ((const struct perfpersist_info *)a)->id;
	uint64_t y = ((const struct perfpersist_info *)b)->id;

	return (x > y) - (x < y);
}

static int list(const struct save *s, const char *ns, struct client_infos *infos)
{
	int r;

	if (*ns && !client_name_is_valid(ns))
		return client_fail(-EINVAL, "\"%s\" cannot be the name of a namespace", ns);
	r = *ns ? list_namespace(s, ns, infos) : list_all(s, infos);
	if (*ns && r == -ENOENT)
		return client_fail(r,
				   "there is no namespace %s in the save %s: `perfctl --saved=%s "
				   "list` shows those that are there",
				   ns, s->path, s->path);
	if (*ns && (r == -EACCES || r == -ENOTDIR || r == -ELOOP))
		return client_fail(r, "cannot read %s/%s: %s", s->path, ns, saved_file_error(r));
	if (r >= 0 && infos->n)
		qsort(infos->v, infos->n, sizeof(*infos->v), compare_ids);
	return r;
}

/* ── One event ──────────────────────────────────────────────────────────────────────────── */

static int find_by_id(const struct save *s, uint64_t id, struct perfpersist_info *ret)
{
	struct client_infos infos = { .v = NULL };
	int r = list(s, "", &infos);

	for (size_t i = 0; r >= 0 && i < infos.n; i++)
		if (infos.v[i].id == id) {
			*ret = infos.v[i];
			client_infos_done(&infos);
			return 0;
		}
	client_infos_done(&infos);
	if (r < 0)
		return r;
	return client_fail(-ENOENT,
			   "there is no event with the id %" PRIu64 " in the save %s: `perfctl "
			   "--saved=%s list` shows those that are there",
			   id, s->path, s->path);
}

/* Finds the requested event, its description and its directory. */
static int find_event(const struct save *s, const struct pp_msg_name *which,
		      struct perfpersist_info *ret, int *ret_fd)
{
	char ns[PP_NAME_SIZE], name[PP_NAME_SIZE];
	_cleanup_close_ int ns_dir = -EBADF, fd = -EBADF;
	int r = 0;

	memcpy(ns, which->ns, sizeof(ns));
	memcpy(name, which->name, sizeof(name));
	if (which->id) {
		r = find_by_id(s, which->id, ret);
		if (r < 0)
			return r;
		memcpy(ns, ret->ns, sizeof(ns));
		memcpy(name, ret->name, sizeof(name));
	}
	if (!client_name_is_valid(ns) || !client_name_is_valid(name))
		return client_fail(-EINVAL, "\"%s/%s\" cannot be the name of an event", ns, name);
	ns_dir = saved_dir_open(s->fd, ns);
	r = ns_dir < 0 ? ns_dir : read_event(ns_dir, ns, name, ret);
	if (r >= 0)
		r = fd = saved_dir_open(ns_dir, name);
	if (r < 0)
		return cannot_read(s, ns, name, r);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int show(const struct save *s, struct request *req)
{
	_cleanup_close_ int fd = -EBADF;
	struct perfpersist_info info;
	int r = find_event(s, &req->body.name, &info, &fd);

	return r < 0 ? r : client_infos_add(&req->answer.infos, &info);
}

static int open_rings(const struct save *s, struct request *req)
{
	_cleanup_close_ int fd = -EBADF;
	struct perfpersist_info info;
	int r = find_event(s, &req->body.open.which, &info, &fd);

	return r < 0 ? r : saved_rings_open(s->path, fd, &info, &req->answer.event);
}

int saved_run(const char *path, int fd, struct request *req)
{
	const struct save s = { .path = path, .fd = fd };

	switch (req->op) {
	case PP_OP_LIST:
		return list(&s, req->body.list.ns, &req->answer.infos);
	case PP_OP_SHOW:
		return show(&s, req);
	case PP_OP_OPEN:
		return open_rings(&s, req);
	case PP_OP_SIDEBAND:
		return saved_sideband(path, fd, &req->body.sideband, &req->answer);
	default:
		return client_fail(-EOPNOTSUPP,
				   "cannot do that with the save %s: it can only be read; "
				   "perfpersistd does all else",
				   path);
	}
}
