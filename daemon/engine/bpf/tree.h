/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants of the programs in tree.bpf.h. */
#pragma once

#include <linux/types.h>

/* The most programs whose misses `stat` sums up; with more, it says that they are unknown. */
#define TREE_PROGRAMS_MAX 1024

/* The counts of replaced rings on a CPU, for `stat`. */
struct tree_counts {
	__u64 records, bytes, limited, missed, idle;
};

struct tree_constants {
	__u32 n_programs; /* whose misses `stat` sums up; `distances` leads to their counters */
	__u32 missed_unknown;
	__u32 missed_at_least; /* more may be missed than are counted */
	__u32 set;	       /* of the rings */
	__u64 id;	       /* as rings have it */
};
