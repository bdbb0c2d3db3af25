/* SPDX-License-Identifier: GPL-2.0-only */
/* The output of the program in links.bpf.h: one of these for each link between a program and a perf event. */
#pragma once

#include <linux/types.h>

struct link_fact {
	__u32 id;
	__u32 alive; /* 0: its task has ended, or its CPU has gone offline; 1 */
	__u32 inherited; /* 1: others count for it, too, which its task's threads or children have got; 0 */
	__u32 bare; /* 1: the first of these runs no program: it is from before the link; 0 */
	__s32 cpu;  /* -1: any */
	__s32 tid;  /* of the task that it is bound to; 0: none, or it has ended */
	__u64 perf_id;
};
