/* SPDX-License-Identifier: GPL-2.0-only */
/* What tree.c tells the programs of tree.bpf.h. */
#pragma once

#include <linux/types.h>

/* The kernel's own counters of so many programs can be summed up; of more it is not told. */
#define TREE_PROGRAMS_MAX 1024

/* What rings that are gone had counted on a CPU, for `stat`. */
struct tree_counts {
	__u64 records, bytes, limited, missed, idle;
};

struct tree_constants {
	__u32 n_programs; /* whose misses are to be told; how to find them is in `distances` */
	__u32 missed_unknown;
	__u32 missed_at_least; /* there may be more than are counted */
	__u32 set;	       /* of the rings */
	__u64 id;	       /* as rings have it */
};
