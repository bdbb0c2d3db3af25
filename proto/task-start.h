/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When a task began: with its number that tells it from every other task of this boot. */
#pragma once

#include <stdint.h>

/*
 * The start time in /proc/TID/stat, field 22: ticks since the boot, in the caller's time namespace. ret_state may be
 * NULL: 'Z' of a process says that its first thread has ended. -ESRCH: no task that the caller may see has that
 * number; -EBADMSG; -errno.
 */
int pp_task_start(uint32_t tid, uint64_t *ret, char *ret_state);
