/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trigger and its targets have in common. Each is the value of a one-element
 * BPF_MAP_TYPE_ARRAY (BPF_F_MMAPABLE).
 */
#pragma once

#include <linux/types.h>

/* Sides are slots of a PROG_ARRAY for each source. */
enum pp_side {
	PP_SIDE_A,
	PP_SIDE_B,
	PP_SIDE_NONE, /* frozen, and no other set of rings: its program only counts */
	PP_SIDES,
};

/*
 * The tape of an armed event: which of its sides records. A trigger changes the side, in the kernel
 * and for all CPUs at once; each recording program looks at it first (emit/guard.h).
 */
struct pp_tape {
	__u64 side;
	/* The side that the next trigger turns to; PP_SIDES: the event is not armed, because the
	 * last tape is not saved yet. */
	__u64 next;
	__u64 fired;  /* when it was turned last; CLOCK_MONOTONIC, ns */
	__u64 by;     /* the trigger's id, */
	__u64 number; /* and its firing */
	__u64 late;   /* firings that found the event not armed */
	/* Events that found no program on their side: never, if the engine has made no mistake. */
	__u64 lost;
	__u64 reserved;
};

/* A trigger's state. */
struct pp_trigger {
	__u64 last;   /* when it fired; CLOCK_MONOTONIC, ns; 0: never */
	__u64 fired;  /* how often it fired, */
	__u64 held;   /* how often it did not because of its hold-off, */
	__u64 spent;  /* and how often because it had fired often enough that day */
	__u64 day;    /* when the current day began; CLOCK_MONOTONIC, ns */
	__u64 in_day; /* firings in it */
	__u64 untold; /* firings that the broker was not told of: its ring buffer was full */
	__u64 reserved;
};

/* What the broker is told. */
struct pp_fired {
	__u64 trigger; /* id */
	__u64 number;  /* pp_trigger.fired after it */
	__u64 time;    /* CLOCK_MONOTONIC, ns */
	__u32 cpu, pid, tid;
	__u32 turned; /* targets that it turned */
	char comm[16];
};
