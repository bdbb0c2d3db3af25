/* SPDX-License-Identifier: GPL-2.0-only */
/* What syscall.bpf.c tells. */
#pragma once

#include <linux/types.h>

/* Tracepoints of system calls there can be: two for each call (x86-64 has 380 calls). */
#define SYSCALL_TRACEPOINTS_MAX 2048

struct syscall_table {
	/* Tasks in a 32-bit call, whose numbers are others, have one of these bits in the 4 bytes
	 * there in their task_struct. */
	__u32 compat_offset, compat_mask;
	__u32 n; /* more than SYSCALL_TRACEPOINTS_MAX: there was no room for all */
	struct {
		__u32 tracepoint;
		__s32 number;
	} calls[SYSCALL_TRACEPOINTS_MAX];
};
