/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tasks and cgroups in which bound events count: finds them, and tells whether they are still the same. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "proto/protocol.h"

static inline bool target_is_task(const struct pp_msg_target *t)
{
	return t->kind == PP_TARGET_PROCESS || t->kind == PP_TARGET_THREAD;
}

/*
 * Of a request: checks that it is there, and is what is meant. Of a cgroup, writes its path, if it was named by its
 * unit, and its id. Messages in *f: -ESRCH; -ENOENT, -EINVAL, -EOPNOTSUPP as of cgroup_find(); -errno.
 */
int target_take(struct pp_msg_target *t, struct failure *f);

/*
 * A task: a pidfd, the caller's, which becomes readable when it ends. -EOPNOTSUPP: it is there, but has none (a
 * cgroup; a thread before Linux 6.9). -ESRCH: it has ended, or is removed. -errno: unknown.
 */
int target_watch(const struct pp_msg_target *t);

/* False also if that cannot be found out now. */
bool target_has_ended(const struct pp_msg_target *t);

/* The numbers of its present threads, ascending; *ret is for free(3). A thread's is its own. -ESRCH; -ENOMEM; -errno. */
int target_threads(const struct pp_msg_target *t, pid_t **ret, size_t *ret_n);

/* Whether it is one of these. */
bool target_has_thread(const pid_t *v, size_t n, pid_t tid);
