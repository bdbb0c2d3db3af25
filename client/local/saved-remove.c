// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removes saves. First renames a save, so that a half-removed one never looks complete. */
#include "client/local/saved-remove.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>

#include "client/local/saved-file.h"
#include "client/local/saved-place.h"
#include "proto/macro.h"

#define DEPTH_MAX 4 /* a save, a namespace, an event; one more only for the first call */

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static int remove_below(int at, const char *name, unsigned depth)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return fd < 0 ? fd : -errno;
	TAKE_FD(fd);
	while (r >= 0 && (entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		r = errno == EISDIR && depth > 1
			    ? remove_below(dirfd(dir), entry->d_name, depth - 1)
			    : -errno;
	}
	if (r < 0)
		return r;
	return unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int saved_remove(int at, const char *name)
{
	return remove_below(at, name, DEPTH_MAX);
}

int saved_discard(int at, const char *name)
{
	char doomed[NAME_MAX + 1];

	if ((size_t)snprintf(doomed, sizeof(doomed), "+del-%s", name) >= sizeof(doomed))
		return -ENAMETOOLONG;
	saved_remove(at, doomed); /* an earlier one of that name, which would be in the way */
	if (renameat(at, name, at, doomed) < 0)
		return -errno;
	saved_remove(at, doomed); /* else the next sweep does */
	return 0;
}

/* Removes an unfinished save, if nobody is making it: its maker would hold a lock. We hold the lock
 * while we look. */
static void remove_abandoned(int at, const char *name)
{
	_cleanup_close_ int fd = saved_dir_open(at, name);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		saved_remove(at, name);
}

void saved_sweep(int at)
{
	_cleanup_close_ int fd = saved_dir_open(at, ".");
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	TAKE_FD(fd);
	while ((entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "+new-", 5))
			remove_abandoned(at, entry->d_name);
		else if (!strncmp(entry->d_name, "+del-", 5))
			saved_remove(at, entry->d_name);
	}
}

unsigned saved_prune(int at, unsigned keep, const char *newest)
{
	_cleanup_free_ struct saved_name *names = NULL;
	unsigned removed = 0;
	size_t n = 0;

	if (saved_names(at, &names, &n) < 0)
		return 0;
	for (size_t i = 0; i < n && n - i > keep; i++)
		/* the newest one is among them if the clock was set back */
		removed += strcmp(names[i].s, newest) != 0 && saved_discard(at, names[i].s) >= 0;
	return removed;
}
