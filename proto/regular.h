/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens files whose names a stranger chose: in a record, in a save, in an event's text. Owns the
 * rule for what may be opened; does not know the files' contents. */
#pragma once

#include <stdint.h>

/*
 * Opens a regular file that stores something, for reading; CLOEXEC. Never opens anything else,
 * because opening can have effects: a watchdog begins to count, a pipe's writer goes on. Files that
 * the kernel generates (in /proc, /sys and the like) are also regular, and reading them can have
 * effects.
 *
 * resolve: as for openat2(2). RESOLVE_NO_SYMLINKS where no link is followed at all;
 * RESOLVE_NO_MAGICLINKS where a path must not lead out of this mount namespace, as /proc/PID/root
 * does. The caller checks that it is the intended file.
 *
 * -ELOOP: a link that is not followed; -EINVAL: not such a file; another -errno.
 */
int regular_open(int dir_fd, const char *path, uint64_t resolve);

/* Stats the file that would be opened, without opening it. The same errors. */
struct stat;
int regular_stat(int dir_fd, const char *path, uint64_t resolve, struct stat *ret);
