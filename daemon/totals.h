/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the broker counts many events: by a program of the instance (BPF_PROG_TYPE_SYSCALL, pinned)
 * that it runs for each. An event's file `stat` says the same and more, but to open, read and close
 * it takes seven times as long. The program knows the events whose `stat` was read before.
 */
#pragma once

#include <linux/types.h>

#define PP_TOTALS "+totals"
/* What it knows of events. Another form has another name. */
#define PP_TOTALS_KNOWN "+totals-known-1"

/* The program's context, for BPF_PROG_RUN. */
struct pp_totals {
	__u64 id;    /* in: pp_event.origin */
	__u32 set;   /* in: pp_event.set */
	__u32 known; /* out: 1, and what follows is as in `stat`; 0: it is to be read there */
	__u64 records, bytes, limited, missed;
	__u32 missed_unknown;  /* 1: how many were missed the kernel does not tell */
	__u32 missed_at_least; /* 1: there may be more than are counted */
};
