/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps that all events of the instance share and the broker reads, pinned in the registry as soon
 * as an event needs them: the ring buffer of wakeups (daemon/wakeup.h), and the one place where
 * counts are answered (daemon/counts.h).
 */
#ifndef PP_ENGINE_SHARED_H
#define PP_ENGINE_SHARED_H

#include <sys/types.h>

/* The map, made and pinned for `broker` if it is not there. An fd, the caller's; or -errno. */
int shared_wakeups(uid_t broker);
int shared_counts(uid_t broker);

#endif
