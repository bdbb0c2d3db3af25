/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance's ring buffer of wakeups: recorders write it, the broker reads it (see
 * daemon/wakeup.h). There is none before the first event that wakes readers.
 */
#pragma once

#include <sys/types.h>

/* The map, made and pinned for `broker` if it is not there. An fd, the caller's; or -errno. */
int wakeups_fd(uid_t broker);
