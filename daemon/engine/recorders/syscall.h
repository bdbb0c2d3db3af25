/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracepoints of single system calls (syscalls:*) that are recorded from raw_syscalls:*, whose
 * context begins with the same bytes ("carried"): a single one by an entry that checks its number,
 * several by one entry for all.
 *
 * All are carried where the kernel may preempt their programs (kernel_preempts_syscalls()): while a
 * task is preempted in such a program, which can take seconds, the CPU misses its events; perf
 * calls programs of raw_syscalls:* with preemption off.
 *
 * On other kernels those from globs are carried, in events of many sources: `syscalls:*` is then
 * two links, not 720, which the kernel releases in milliseconds instead of half a minute. With few
 * sources it would slow down all other calls, by the entry (some 50 ns of a call that is traced
 * anyway).
 */
#pragma once

#include <stdbool.h>

#include "daemon/engine/kernel/tracefs.h"

struct syscall_facts {
	uint32_t number;
	/* Tasks in a 32-bit call have other numbers, and one of these bits set in the 4 bytes at
	 * this offset of task_struct. */
	uint32_t compat_offset, compat_mask;
};

#define SYSCALL_MANY 32 /* an event with more sources has many */

/* Whether it is carried; of_many: it is from a glob, in an event of many sources. */
bool syscall_is_carried(const struct tracepoint *tp, bool of_many);

/* Its number; reads those of all calls from the kernel once. -ENOENT: unknown; -errno of the
 * kernel. */
int syscall_read(const struct tracepoint *tp, struct syscall_facts *ret);

/* The tracepoint of raw_syscalls that fires with it. */
const char *syscall_carrier_name(const struct tracepoint *tp);
/* Its id; -errno of tracepoint_read(). */
int syscall_carrier(const struct tracepoint *tp, uint32_t *ret_id);
