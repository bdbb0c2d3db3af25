/* SPDX-License-Identifier: GPL-2.0-only */
/* What syscall.bpf.c tells. */
#ifndef PP_SYSCALL_BPF_H
#define PP_SYSCALL_BPF_H

#include <linux/types.h>

struct syscall_facts {
	__s32 number;
	/* Tasks in a 32-bit call, whose numbers are others, have one of these bits in the 4 bytes
	 * there in their task_struct. */
	__u32 compat_offset, compat_mask;
};

#endif
