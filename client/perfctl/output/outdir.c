// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/output/outdir.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "proto/macro.h"

/* ── Removing ── */

#define DEPTH_MAX 16 /* of what is copied into it */

static void remove_below(int fd, unsigned depth)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d) {
		close_fd(copy);
		return;
	}
	while ((e = readdir(d))) {
		int below;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0) == 0 || depth == DEPTH_MAX)
			continue;
		below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		remove_below(below, depth + 1);
		close(below);
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

void outdir_done(struct outdir *o)
{
	if (o->top >= 0) {
		remove_below(o->top, 0);
		/* If somebody has put another one there, then only an empty one goes. */
		unlinkat(o->parent, o->hidden, AT_REMOVEDIR);
	}
	close_fd(o->dir);
	close_fd(o->top);
	close_fd(o->parent);
	free(o->name);
	free(o->hidden);
	free(o->archive);
	*o = OUTDIR_NONE;
}

/* ── Making ── */

static int open_directory(int at, const char *name, int flags)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

/* One that was made just now, and not replaced since. */
static int make_directory(int at, const char *name)
{
	struct stat st;
	int fd;

	if (mkdirat(at, name, 0700) < 0)
		return -errno;
	fd = open_directory(at, name, O_NOFOLLOW);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static int open_parent(const char *path, const char *name)
{
	_cleanup_free_ char *place = strndup(path, (size_t)(name - path));

	if (!place)
		return -ENOMEM;
	return open_directory(AT_FDCWD, *place ? place : ".", 0);
}

static bool exists(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int name_all(struct outdir *o, const char *name)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), 0) < 0)
		return -errno;
	o->name = strdup(name);
	if (asprintf(&o->hidden, ".%s.%08x", name, number) < 0)
		o->hidden = NULL;
	if (asprintf(&o->archive, "%s.tar.gz", name) < 0)
		o->archive = NULL;
	return o->name && o->hidden && o->archive ? 0 : -ENOMEM;
}

static int open_all(const char *path, struct outdir *o)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int r;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	r = name_all(o, name);
	if (r < 0)
		return r;
	o->parent = open_parent(path, name);
	if (o->parent < 0)
		return o->parent;
	if (exists(o->parent, o->name) || exists(o->parent, o->archive))
		return -EEXIST;
	o->top = make_directory(o->parent, o->hidden);
	if (o->top < 0)
		return o->top;
	o->dir = make_directory(o->top, o->name);
	return MIN(o->dir, 0);
}

int outdir_open(const char *path, struct outdir *ret)
{
	struct outdir o = OUTDIR_NONE;
	int r = open_all(path, &o);

	if (r < 0)
		outdir_done(&o);
	else
		*ret = o;
	return r;
}

static int create(int at, const char *name, int flags)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);

	return fd < 0 ? -errno : fd;
}

int outdir_append(const struct outdir *o, const char *name)
{
	return create(o->dir, name, O_APPEND);
}

FILE *outdir_append_stream(const struct outdir *o, const char *name)
{
	int fd = outdir_append(o, name);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "a");

	if (!f)
		close_fd(fd);
	return f;
}

int outdir_archive(const struct outdir *o)
{
	return create(o->top, o->archive, O_EXCL);
}

/* ── The end ── */

/* Replaces nothing. */
static int move_out(const struct outdir *o, const char *name)
{
	if (renameat2(o->top, name, o->parent, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL) /* the file system cannot do that */
		return -errno;
	if (exists(o->parent, name))
		return -EEXIST;
	return renameat(o->top, name, o->parent, name) < 0 ? -errno : 0;
}

int outdir_commit(struct outdir *o)
{
	int r = move_out(o, o->archive);

	if (r < 0)
		return r;
	r = move_out(o, o->name);
	if (r < 0)
		unlinkat(o->parent, o->archive, 0);
	return r;
}
