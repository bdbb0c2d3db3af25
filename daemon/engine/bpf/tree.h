/* SPDX-License-Identifier: GPL-2.0-only */
/* What tree.c tells the programs of tree.bpf.c. */
#ifndef PP_BPF_TREE_H
#define PP_BPF_TREE_H

#include <linux/types.h>

struct tree_constants {
	/*
	 * From the address of the map per_cpu's element on a CPU to the counter of the
	 * recording program's misses on that CPU. 0: cannot be told.
	 */
	__s64 stats_distance;
	__u32 missed_unknown;
	__u32 reserved;
};

#endif
