/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts of events: the broker runs a program of the instance (BPF_PROG_TYPE_SYSCALL, pinned) for
 * each event. An event's file `stat` says the same and more, but opening, reading and closing it
 * takes seven times as long. The program knows the events whose `stat` was read before.
 */
#pragma once

#include <linux/types.h>

#define PP_TOTALS "+totals"
/* The program's map of events. A changed layout gets a new name. */
#define PP_TOTALS_KNOWN "+totals-known-1"

/* The program's context, for BPF_PROG_RUN. */
struct pp_totals {
	__u64 id;    /* in: pp_event.origin */
	__u32 set;   /* in: pp_event.set */
	__u32 known; /* out: 1: the rest is as in `stat`; 0: read `stat` */
	__u64 records, bytes, limited, missed;
	__u32 missed_unknown;  /* 1: the kernel does not tell how many were missed */
	__u32 missed_at_least; /* 1: more may be missed than are counted */
};
