/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Features of the running kernel that trying cannot find out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct btf;

/* Whether -errno says that the machine lacks something for the moment: the kernel refuses nothing,
 * and the same may succeed later. */
bool kernel_lacks_for_now(int r);

/* Whether it has BTF, which iterators and tp_btf programs need. */
bool kernel_has_btf(void);

/* The kernel's BTF, until kernel_btf_forget(). NULL with errno. */
const struct btf *kernel_btf(void);

/* Frees it: before libbpf reads it once more, into the same memory (heap.h), and when an order has been carried out. */
void kernel_btf_forget(void);

/* Whether lockdown (confidentiality) keeps programs from reading kernel memory. */
bool kernel_is_confidential(void);

/* PREEMPT_RT, by its version's text: "#1 SMP PREEMPT_RT Debian …" */
bool kernel_is_realtime(void);

/* By its release; a distribution's kernel may have more than its number says, never less. */
bool kernel_is_at_least(int major, int minor);

/*
 * Whether a task can be preempted inside a tp_btf program on a tracepoint that is called with
 * preemption on. The program then misses events on that CPU until the task runs again: tracepoints
 * under SRCU-fast (7.0).
 */
bool kernel_preempts_tracepoints(void);

/*
 * Whether the same is true of programs on syscalls:*, which then have no common guard:
 * trace_call_bpf_faultable() (7.0).
 */
bool kernel_preempts_syscalls(void);

/* Where task_struct.mm is, by BTF; NULL there: the task has no memory of its own. < 0: -ENOMEM for now, or
 * -ENOENT. */
int kernel_task_mm(void);

/* Nanoseconds between two clock ticks: one jiffy. */
uint64_t kernel_tick(void);
