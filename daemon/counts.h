/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the broker counts an event, in one system call where its text file `stat` takes three and a
 * text: BPF_PROG_TEST_RUN of the event's program `count` (BPF_PROG_TYPE_RAW_TRACEPOINT, pinned),
 * whose first argument is a CPU's number. It writes what it finds on that CPU and some behind it into
 * the instance's map PP_COUNTS, whose one element is this. The broker alone runs it, one at a time.
 */
#ifndef PP_COUNTS_H
#define PP_COUNTS_H

#include <linux/types.h>

#define PP_COUNTS "+counts"
#define PP_COUNTS_END (-1U)

struct pp_counts {
	__u64 records, bytes, limited, missed; /* as in `stat` */
	__u32 missed_unknown;  /* 1: how many were missed the kernel does not tell */
	__u32 missed_at_least; /* 1: there may be more than are counted */
	__u32 next;	       /* the CPU to go on with; PP_COUNTS_END: that was all */
	__u32 reserved;
};

#endif
