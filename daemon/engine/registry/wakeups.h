/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance's ring buffer of wakeups: recorders write it, the broker reads it (see
 * daemon/wakeup.h). It exists from the first event on that wakes readers.
 */
#pragma once

#include <sys/types.h>

/* The map, which is made and pinned for `broker` if necessary. An fd, the caller's; or -errno. */
int wakeups_fd(uid_t broker);
