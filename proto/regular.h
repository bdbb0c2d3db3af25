/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens files whose names a stranger chose: in a record, in a save, in an event's text. Owns the
 * rule for what may be opened; knows nothing of what is in the files.
 */
#pragma once

#include <stdint.h>

/*
 * Opens a regular file that stores something, for reading; CLOEXEC. Nothing else is ever opened,
 * since to open can have effects: a watchdog begins to count, a pipe's writer goes on. Files that
 * the kernel makes up (in /proc, /sys and the like) are regular too, and to read them can have
 * effects.
 *
 * resolve: as openat2(2) has it. RESOLVE_NO_SYMLINKS where no link is followed at all;
 * RESOLVE_NO_MAGICLINKS where a path must not lead out of this mount namespace, as /proc/PID/root
 * does. The caller checks that it is the file that was meant.
 *
 * -ELOOP: there is a link that is not followed; -EINVAL: not such a file; another -errno.
 */
int regular_open(int dir_fd, const char *path, uint64_t resolve);

/* Of what would be opened, which is not. The same errors. */
struct stat;
int regular_stat(int dir_fd, const char *path, uint64_t resolve, struct stat *ret);
