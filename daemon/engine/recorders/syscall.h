/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracepoints of single system calls (syscalls:*) that are recorded from raw_syscalls:*, what
 * programs see there begins with the same bytes: one alone by an entry that knows its number,
 * several by one entry for all of them.
 *
 * All are where the kernel may preempt their programs (kernel_preempts_syscalls()). Such a program
 * is shut out on a CPU for as long as a task is preempted in it there, which can be seconds; perf
 * calls those of raw_syscalls:* with preemption off.
 *
 * Elsewhere those are that a glob stands for, in an event of many: `syscalls:*` is two links then,
 * not 720, which the kernel lets go of in milliseconds and not in half a minute. Of few it would
 * slow down all other calls, by the entry (some 50 ns of a call that is traced anyway).
 */
#pragma once

#include <stdbool.h>

#include "daemon/engine/kernel/tracefs.h"

struct syscall_facts {
	uint32_t number;
	/* Tasks in a 32-bit call, whose numbers are others, have one of these bits in the 4 bytes
	 * there in their task_struct. */
	uint32_t compat_offset, compat_mask;
};

#define SYSCALL_MANY 32 /* sources of an event; more are many */

/* Whether it is such a one; of_many: a glob stands for it, in an event of many. */
bool syscall_is_carried(const struct tracepoint *tp, bool of_many);

/* What its number is. The kernel is asked once for all of them. -ENOENT: it knows of none; -errno
 * of the kernel. */
int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret);

/* The raw tracepoint that happens with it: of raw_syscalls. */
const char *syscall_carrier_name(const struct tracepoint *tp);
/* Its id; -errno as tracepoint_read() has it. */
int syscall_carrier(const struct tracepoint *tp, uint32_t *ret_id);
