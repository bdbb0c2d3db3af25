/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracepoints of single system calls (syscalls:*), where the kernel may preempt their programs
 * (kernel_preempts_syscalls()). Such a program is shut out on a CPU for as long as a task is
 * preempted in it there, which can be seconds. raw_syscalls:* are not: perf calls their programs
 * with preemption off, and what these see begins with the same bytes. So an event of one system
 * call alone has its program there.
 */
#ifndef PP_SYSCALL_H
#define PP_SYSCALL_H

#include <stdbool.h>

#include "daemon/engine/bpf/syscall.h"
#include "daemon/engine/failure.h"
#include "daemon/engine/tracefs.h"

bool syscall_is(const struct tracepoint *tp);

/* Of a tracepoint for which syscall_is(). -errno with a sentence in *f. */
int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret, struct failure *f);

/* The raw tracepoint that happens with it; -errno as tracepoint_read() has it. */
int syscall_carrier(const struct tracepoint *tp, uint32_t *ret_id);

#endif
