// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds a save: by its path, by its name, or the newest of several; lists saves. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "client/local/saved-file.h"
#include "client/local/saved-place.h"
#include "client/local/saved.h"
#include "client/perfpersist.h"
#include "client/public.h"

static int no_saves(const char *path)
{
	return client_fail(-ENOENT,
			   "there is no save in %s: `perfctl save` makes one, and "
			   "perfpersist-save.service one at each shutdown",
			   path);
}

static int cannot_open(const char *path, int error)
{
	if (error == -ENOENT)
		return client_fail(error,
				   "there is no save %s: `perfctl save --list` shows those "
				   "that are there",
				   path);
	return client_fail(error, "cannot read the save %s: %s", path, saved_file_error(error));
}

static int join(const char *path, const char *name, char **ret)
{
	if (asprintf(ret, "%s%s%s", path, name ? "/" : "", name ?: "") >= 0)
		return 0;
	*ret = NULL;
	return client_fail(-ENOMEM, "cannot open the save %s: out of memory", path);
}

/* Opens the newest save in an open directory. 1: there is one. */
static int open_newest(const char *path, int fd, char **ret_path, int *ret_fd)
{
	_cleanup_free_ struct saved_name *names = NULL;
	int r, newest;
	size_t n = 0;

	r = saved_names(fd, &names, &n);
	if (r < 0)
		return client_fail(r, "cannot read %s: %s", path, strerror(-r));
	if (n == 0)
		return 0;
	newest = saved_dir_open(fd, names[n - 1].s);
	if (newest < 0)
		return client_fail(newest, "cannot read the save %s/%s: %s", path, names[n - 1].s,
				   saved_file_error(newest));
	r = join(path, names[n - 1].s, ret_path);
	if (r < 0) {
		close_fd(newest);
		return r;
	}
	*ret_fd = newest;
	return 1;
}

/* The caller's own path may have links in it. */
static int open_path(const char *path, char **ret_path, int *ret_fd)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = fd < 0 ? cannot_open(path, -errno) : open_newest(path, fd, ret_path, ret_fd);

	if (found != 0)
		return MIN(found, 0);
	found = join(path, NULL, ret_path);
	if (found >= 0)
		*ret_fd = TAKE_FD(fd);
	return found;
}

/* A save of the instance: the one of that name, or the newest. */
static int open_own(const char *place, const char *name, char **ret_path, int *ret_fd)
{
	_cleanup_close_ int fd = saved_dir_open(AT_FDCWD, place);
	_cleanup_free_ char *path = NULL;
	int r, save;

	if (fd < 0 && fd != -ENOENT)
		return client_fail(fd, "cannot read %s: %s", place, saved_file_error(fd));
	if (!*name) {
		int found = fd < 0 ? 0 : open_newest(place, fd, ret_path, ret_fd);

		return found ? MIN(found, 0) : no_saves(place);
	}
	r = join(place, name, &path);
	if (r < 0)
		return r;
	save = fd < 0 ? fd : saved_dir_open(fd, name);
	if (save < 0)
		return cannot_open(path, save);
	*ret_path = TAKE_PTR(path);
	*ret_fd = save;
	return 0;
}

/* Checkpoints become saves when their service starts. */
static int open_previous_boot(const char *place, char **ret_path, int *ret_fd)
{
	_cleanup_close_ int fd = saved_dir_open(AT_FDCWD, place);
	int found = fd < 0 ? fd : open_newest(place, fd, ret_path, ret_fd);

	if (found == 0 || found == -ENOENT)
		return client_fail(
			-ENOENT,
			"there are no checkpoints of an earlier boot in %s: `perfctl create "
			"--checkpoint 5s` asks for them, and perfpersist-checkpoint.service "
			"writes them, and finds them when it starts",
			place);
	if (fd < 0)
		return client_fail(fd, "cannot read %s: %s", place, saved_file_error(fd));
	return MIN(found, 0);
}

int saved_open(const char *instance, const char *which, char **ret_path, int *ret_fd)
{
	char place[PATH_MAX];
	int r;

	if (!strcmp(which, SAVED_PREVIOUS_BOOT)) {
		r = checkpoint_place(instance, place, sizeof(place));
		return r < 0 ? r : open_previous_boot(place, ret_path, ret_fd);
	}
	if (*which && !saved_name_is_valid(which))
		return open_path(which, ret_path, ret_fd);
	r = saved_place(instance, place, sizeof(place));
	return r < 0 ? r : open_own(place, which, ret_path, ret_fd);
}

/* ── The list ───────────────────────────────────────────────────────────────────────────── */

static int describe(const char *place, const char *name, struct perfpersist_saved *ret)
{
	struct perfpersist_saved s = { .sz = sizeof(s) };

	if ((size_t)snprintf(s.path, sizeof(s.path), "%s/%s", place, name) >= sizeof(s.path))
		return client_fail(-ENAMETOOLONG, "the path of the save %s/%s is too long", place,
				   name);
	snprintf(s.name, sizeof(s.name), "%s", name);
	s.time = (uint64_t)saved_name_time(name) * 1000000000;
	*ret = s;
	return 0;
}

_public_ int perfpersist_saves(const char *instance, struct perfpersist_saved **ret, size_t *ret_n)
{
	_cleanup_free_ struct saved_name *names = NULL;
	_cleanup_free_ struct perfpersist_saved *saves = NULL;
	_cleanup_close_ int fd = -EBADF;
	char place[PATH_MAX];
	size_t n = 0;
	int r = saved_place(instance, place, sizeof(place));

	if (r < 0)
		return r;
	fd = saved_dir_open(AT_FDCWD, place);
	r = fd == -ENOENT ? 0 : fd < 0 ? fd : saved_names(fd, &names, &n);
	if (r < 0)
		return client_fail(r, "cannot read %s: %s", place, saved_file_error(r));
	saves = calloc(n + 1, sizeof(*saves));
	if (!saves)
		return client_fail(-ENOMEM, "cannot list the saves: out of memory");
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = describe(place, names[i].s, &saves[i]);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(saves);
	*ret_n = n;
	return 0;
}
