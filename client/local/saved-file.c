// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens the files of a save by name. */
#include "client/local/saved-file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/macro.h"
#include "proto/regular.h"

int saved_file_open(int dir_fd, const char *name)
{
	return regular_open(dir_fd, name, RESOLVE_NO_SYMLINKS);
}

int saved_dir_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	struct stat st;

	/* The kernel reports a link as ENOTDIR. */
	if (r == -ENOTDIR && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		r = -ELOOP;
	return r < 0 ? r : fd;
}

const char *saved_file_error(int error)
{
	switch (error) {
	case -ELOOP:
		return "it is a symbolic link, and in saves none are followed";
	case -EINVAL:
		return "it is not a plain file";
	case -EBADMSG:
		return "it is damaged or cut off";
	case -EFBIG:
		return "it is larger than it can be";
	}
	return strerror(-error);
}
