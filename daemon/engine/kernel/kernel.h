/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the running kernel can do, where it cannot be found out by trying. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether it has the BTF that iterators and tp_btf programs need. */
bool kernel_has_btf(void);

/* Whether it is locked down so far that no program may read what is the kernel's. */
bool kernel_is_confidential(void);

/* By its release; a distribution's kernel may have more than its number says, never less. */
bool kernel_is_at_least(int major, int minor);

/*
 * Whether a task can be preempted inside a tp_btf program where its tracepoint is called with
 * preemption on, and shuts that program out on its CPU until it runs again: tracepoints under
 * SRCU-fast (7.0).
 */
bool kernel_preempts_tracepoints(void);

/*
 * Whether the same goes for programs on syscalls:*, which then have no guard in common:
 * trace_call_bpf_faultable() (7.0).
 */
bool kernel_preempts_syscalls(void);

/* Nanoseconds between two ticks of its clock: of one jiffy. */
uint64_t kernel_tick(void);
