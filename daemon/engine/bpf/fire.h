/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants of the program that fires a trigger, set when it is loaded. */
#pragma once

#include <linux/types.h>

#define FIRE_TARGETS_MAX 64 /* events that one trigger freezes */

struct fire_constants {
	__u64 id;	   /* the trigger's */
	__u64 hold_off;	   /* ns; 0: none */
	__u64 max_per_day; /* UINT64_MAX: no limit */
	__u64 result;	   /* of the program: as the recording program's */
};
