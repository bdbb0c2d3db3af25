/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens what is in a save. A save may come from anywhere: links are not followed, and what is
 * no plain file is not read. Knows nothing of what is in the files.
 */
#pragma once

/* For reading; CLOEXEC. -ELOOP: it is a link; -EINVAL: no plain file; another -errno. */
int saved_file_open(int dir_fd, const char *name);

/* For reading; CLOEXEC. -ELOOP: it is a link; another -errno. */
int saved_dir_open(int dir_fd, const char *name);

/* strerror(), with words for what these two return. */
const char *saved_file_error(int error);
