// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The directory of a save, from its creation to its final name. A lock on it, which ends with the
 * process, shows others that it is in use. (A lock on the parent directory would not do: everybody
 * may read that one and so could lock it.)
 */
#include "client/local/saved-make.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "client/local/saved-file.h"
#include "client/local/saved-place.h"
#include "client/local/saved-remove.h"
#include "client/public.h"

int saving_failed(const struct saving *s, const char *what, int error)
{
	const char *hint = "";

	if (error == -ENOSPC || error == -EDQUOT)
		hint = s->is_fixed ? "; make room there"
				   : "; make room there, or save to another place with -o";
	else if (!s->is_fixed && (error == -EACCES || error == -EPERM || error == -EROFS))
		hint = "; save to a place where you may write, with -o";
	return client_fail(error, "cannot save to %s: %s: %s%s", s->path, what, strerror(-error),
			   hint);
}

#define NAMES_AHEAD 60 /* how many seconds a name may be ahead of its time */

/* ── Beginning ──────────────────────────────────────────────────────────────────────────── */

static bool is_same(int fd, int at, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(at, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Makes a private, locked directory. First removes what another process left under this name. */
static int make_temp(struct saving *s)
{
	for (;;) {
		_cleanup_close_ int fd = -EBADF;
		int made = mkdirat(s->parent_fd, s->temp, 0700), error = -errno;
		struct stat st;

		if (made < 0 && error != -EEXIST)
			return saving_failed(s, "making the directory", error);
		fd = saved_dir_open(s->parent_fd, s->temp);
		if (fd == -ENOENT) /* another process took it for an abandoned one */
			continue;
		if (fd < 0)
			return saving_failed(s, s->temp, fd);
		if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
			return saving_failed(s, s->temp, -EPERM);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return client_fail(-EBUSY,
					   "cannot save to %s: another process is just doing that; "
					   "wait for its end",
					   s->path);
		if (!is_same(fd, s->parent_fd, s->temp))
			continue;
		if (made == 0) {
			s->fd = TAKE_FD(fd);
			return 0;
		}
		error = saved_remove(s->parent_fd, s->temp);
		if (error < 0)
			return saving_failed(s, "removing what an earlier try left", error);
	}
}

static int set_names(struct saving *s)
{
	s->name = strrchr(s->path, '/');
	s->name = s->name ? s->name + 1 : s->path;
	if (!*s->name || !strcmp(s->name, ".") || !strcmp(s->name, ".."))
		return client_fail(-EINVAL, "cannot save to %s: it does not end in a name",
				   s->path);
	if ((size_t)snprintf(s->temp, sizeof(s->temp), "+new-%s", s->name) >= sizeof(s->temp))
		return client_fail(-ENAMETOOLONG, "cannot save to %s: the name is too long",
				   s->path);
	return 0;
}

static bool is_there(const struct saving *s)
{
	return faccessat(s->parent_fd, s->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Accepts only a directory of ours that nobody else can write: others could redirect us. */
static int open_place(struct saving *s, const char *place)
{
	char state[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(state, sizeof(state), "%.*s", (int)(strrchr(place, '/') - place), place);
	if (mkdir(state, 0755) < 0 && errno != EEXIST)
		return saving_failed(s, "making the directory", -errno);
	if (mkdir(place, 0755) < 0 && errno != EEXIST)
		return saving_failed(s, "making the directory", -errno);
	fd = saved_dir_open(AT_FDCWD, place);
	if (fd < 0)
		return client_fail(fd, "cannot save to %s: %s: %s", s->path, place,
				   saved_file_error(fd));
	s->parent_fd = fd;
	if (fstat(fd, &st) < 0)
		return saving_failed(s, "looking at the directory", -errno);
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return client_fail(-EACCES,
				   "cannot save to %s: the directory belongs to another user, or "
				   "others can write it%s",
				   place, s->is_fixed ? "" : "; use a place of your own, with -o");
	return 0;
}

/*
 * Chooses a time so that names sort in the order of the saves: later than a save of this very
 * second, and later than those that were moved ahead for the same reason. (If a clock was wrong by
 * more, names are wrong, too.)
 */
static int find_time(const struct saving *s, time_t *ret)
{
	_cleanup_free_ struct saved_name *names = NULL;
	time_t t = time(NULL);
	size_t n = 0;
	int r = saved_names(s->parent_fd, &names, &n);

	if (r < 0)
		return saving_failed(s, "reading the directory", r);
	for (size_t i = 0; i < n; i++) {
		time_t other = saved_name_time(names[i].s);

		if (other >= t && other - t < NAMES_AHEAD)
			t = other + 1;
	}
	*ret = t;
	return 0;
}

static int find_name(struct saving *s, const char *place)
{
	char name[SAVED_NAME_SIZE];
	time_t t = 0;
	int n, r = find_time(s, &t);

	if (r < 0)
		return r;
	saved_name(t, name);
	n = snprintf(s->path, sizeof(s->path), "%s/%s", place, name);
	if (n < 0 || (size_t)n >= sizeof(s->path))
		return client_fail(-ENAMETOOLONG, "the path %s is too long", place);
	return set_names(s);
}

static int begin(struct saving *s, const char *place)
{
	int r;

	snprintf(s->path, sizeof(s->path), "%s", place); /* until it has its own name */
	r = open_place(s, place);
	if (r < 0)
		return r;
	saved_sweep(s->parent_fd);
	r = find_name(s, place);
	return r < 0 ? r : make_temp(s);
}

int saving_begin(const char *instance, struct saving *ret)
{
	char place[PATH_MAX / 2];
	int r = saved_place(instance, place, sizeof(place));

	*ret = (struct saving){ .parent_fd = -EBADF, .fd = -EBADF };
	return r < 0 ? r : begin(ret, place);
}

int saving_begin_in(const char *place, struct saving *ret)
{
	*ret = (struct saving){ .parent_fd = -EBADF, .fd = -EBADF, .is_fixed = true };
	return begin(ret, place);
}

static int open_parent(struct saving *s)
{
	char dir[PATH_MAX];
	size_t n = (size_t)(s->name - s->path);

	snprintf(dir, sizeof(dir), "%.*s", n ? (int)n : 1, n ? s->path : ".");
	s->parent_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->parent_fd < 0 ? saving_failed(s, dir, -errno) : 0;
}

int saving_begin_at(const char *path, struct saving *ret)
{
	size_t n = strlen(path);
	int r;

	*ret = (struct saving){ .parent_fd = -EBADF, .fd = -EBADF };
	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n == 0 || n >= sizeof(ret->path))
		return client_fail(-EINVAL, "cannot save to \"%s\": it is no path", path);
	snprintf(ret->path, sizeof(ret->path), "%.*s", (int)n, path);
	r = set_names(ret);
	if (r >= 0)
		r = open_parent(ret);
	if (r < 0)
		return r;
	if (is_there(ret))
		return client_fail(-EEXIST,
				   "cannot save to %s: there is something of that name already; "
				   "give another one",
				   ret->path);
	return make_temp(ret);
}

/* ── Contents ───────────────────────────────────────────────────────────────────────────── */

static int open_made(int at, const char *name, const struct saved_rights *rights, int *ret)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);
	int r = fd < 0 ? fd : saved_give(fd, rights, saved_dir_mode(rights));

	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 0;
}

int saving_event_dir(struct saving *s, const struct perfpersist_info *info, int *ret_fd)
{
	const struct saved_rights rights = saved_rights_of(info);
	_cleanup_close_ int ns = -EBADF;
	int r;

	if (mkdirat(s->fd, info->ns, 0700) < 0 && errno != EEXIST)
		return -errno;
	r = open_made(s->fd, info->ns, &rights, &ns);
	if (r < 0)
		return r;
	if (mkdirat(ns, info->name, 0700) < 0)
		return -errno;
	return open_made(ns, info->name, &rights, ret_fd);
}

/* ── The end ────────────────────────────────────────────────────────────────────────────── */

static int rename_temp(struct saving *s)
{
	if (renameat2(s->parent_fd, s->temp, s->parent_fd, s->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL) /* not every file system can do that */
		return -errno;
	return renameat(s->parent_fd, s->temp, s->parent_fd, s->name) < 0 ? -errno : 0;
}

int saving_finish(struct saving *s)
{
	int r;

	if (fchmod(s->fd, 0755) < 0)
		return saving_failed(s, "its mode", -errno);
	/* One call for all files: there may be thousands. */
	if (syncfs(s->fd) < 0)
		return saving_failed(s, "writing to the disk", -errno);
	r = rename_temp(s);
	if (r < 0)
		return saving_failed(s, "giving it its name", r);
	s->done = true;
	if (fsync(s->parent_fd) < 0 && errno != EINVAL)
		return saving_failed(s, "writing the directory to the disk", -errno);
	return 0;
}

void saving_done(struct saving *s)
{
	if (s->fd >= 0 && !s->done)
		saved_remove(s->parent_fd, s->temp);
	s->fd = close_fd(s->fd);
	s->parent_fd = close_fd(s->parent_fd);
}
