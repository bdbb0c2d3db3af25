/* SPDX-License-Identifier: GPL-2.0-only */
/* The output of syscall.bpf.c. */
#pragma once

#include <linux/types.h>

/* Most tracepoints of system calls that there can be: two for each call (x86-64 has 380 calls). */
#define SYSCALL_TRACEPOINTS_MAX 2048

struct syscall_table {
	/* Tasks in a 32-bit call, which has other numbers, have one of these bits set in the 4
	 * bytes at this offset of their task_struct. */
	__u32 compat_offset, compat_mask;
	__u32 n; /* more than SYSCALL_TRACEPOINTS_MAX: the table is cut short */
	struct {
		__u32 tracepoint;
		__s32 number;
	} calls[SYSCALL_TRACEPOINTS_MAX];
};
