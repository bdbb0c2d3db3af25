/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance's ring buffers, which programs write and the broker reads: wakeups
 * (daemon/wakeup.h), and firings of triggers (daemon/trigger.h); and who is writing. Each exists
 * from the first event on that needs it.
 */
#pragma once

#include <sys/types.h>

/* The map, which is made and pinned for `broker` if necessary. An fd, the caller's; or -errno. */
int wakeups_fd(uid_t broker);
int firings_fd(uid_t broker);

/* Which CPUs are sending to one of them (bpf/send.bpf.h). An fd, the caller's; or -errno. */
int sending_fd(void);
