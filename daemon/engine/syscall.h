/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracepoints of single system calls (syscalls:*), where the kernel may preempt their programs
 * (kernel_preempts_syscalls()). Such a program is shut out on a CPU for as long as a task is
 * preempted in it there, which can be seconds. raw_syscalls:* are not: perf calls their programs
 * with preemption off, and what these see begins with the same bytes. So they are recorded from
 * there: one alone by an entry that knows its number, several by one entry for all of them.
 */
#ifndef PP_SYSCALL_H
#define PP_SYSCALL_H

#include <stdbool.h>

#include "daemon/engine/tracefs.h"

struct syscall_facts {
	uint32_t number;
	/* Tasks in a 32-bit call, whose numbers are others, have one of these bits in the 4 bytes
	 * there in their task_struct. */
	uint32_t compat_offset, compat_mask;
};

/* Whether it is such a one on such a kernel. */
bool syscall_is_carried(const struct tracepoint *tp);

/* What its number is. The kernel is asked once for all of them. -ENOENT: it knows of none; -errno
 * of the kernel. */
int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret);

/* The raw tracepoint that happens with it: of raw_syscalls. */
const char *syscall_carrier_name(const struct tracepoint *tp);
/* Its id; -errno as tracepoint_read() has it. */
int syscall_carrier(const struct tracepoint *tp, uint32_t *ret_id);

#endif
