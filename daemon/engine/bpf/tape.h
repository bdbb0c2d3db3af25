/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tape of an armed event: which of its sides records. A trigger changes the side, in the kernel
 * and for all CPUs at once; each recording program looks at it first (emit/guard.h).
 *
 * The value of a one-element BPF_MAP_TYPE_ARRAY (BPF_F_MMAPABLE).
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

struct pp_tape {
	__u64 side;
	/* Events that found no program on their side: never, if the engine has made no mistake. */
	__u64 lost;
	__u64 reserved[6];
};
