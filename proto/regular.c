// SPDX-License-Identifier: LGPL-2.1-or-later
#include "regular.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "macro.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

/* A file system that stores nothing has no blocks. Some that do store report none. */
static bool stores_something(const struct statfs *s)
{
	return s->f_blocks || s->f_type == TMPFS_MAGIC || s->f_type == RAMFS_MAGIC ||
	       s->f_type == FUSE_SUPER_MAGIC || s->f_type == OVERLAYFS_SUPER_MAGIC;
}

/*
 * systemd's RestrictSUIDSGID= makes openat2(2) fail with ENOSYS. Without it, links are refused only
 * at the end of the path, and those of /proc are followed: the caller still checks the file that
 * was found.
 */
static int find(int dir_fd, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve };
	int fd = resolve ? (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how)) : -1;

	if (resolve && (fd >= 0 || errno != ENOSYS))
		return fd;
	return openat(dir_fd, path,
		      O_PATH | O_CLOEXEC | (resolve & RESOLVE_NO_SYMLINKS ? O_NOFOLLOW : 0));
}

/* With O_PATH. */
static int find_regular(int dir_fd, const char *path, uint64_t resolve, struct stat *ret)
{
	_cleanup_close_ int found = find(dir_fd, path, resolve);
	struct statfs fs;

	if (found < 0 || fstat(found, ret) < 0 || fstatfs(found, &fs) < 0)
		return -errno;
	if (S_ISLNK(ret->st_mode))
		return -ELOOP;
	if (!S_ISREG(ret->st_mode) || !stores_something(&fs))
		return -EINVAL;
	return TAKE_FD(found);
}

int regular_stat(int dir_fd, const char *path, uint64_t resolve, struct stat *ret)
{
	_cleanup_close_ int found = find_regular(dir_fd, path, resolve, ret);

	return MIN(found, 0);
}

int regular_open(int dir_fd, const char *path, uint64_t resolve)
{
	struct stat st;
	_cleanup_close_ int found = find_regular(dir_fd, path, resolve, &st);
	char self[32];
	int fd;

	if (found < 0)
		return found;
	/* This is the checked file, whatever the path leads to by now. */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
