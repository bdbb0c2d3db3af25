/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens the files of a save. A save may come from anywhere: links are not followed, and only plain
 * files are read. Does not know the files' contents. */
#pragma once

/* For reading; CLOEXEC. -ELOOP: it is a link; -EINVAL: no plain file; another -errno. */
int saved_file_open(int dir_fd, const char *name);

/* For reading; CLOEXEC. -ELOOP: it is a link; another -errno. */
int saved_dir_open(int dir_fd, const char *name);

/* strerror(), with texts for the errors of these two. */
const char *saved_file_error(int error);
