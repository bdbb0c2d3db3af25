/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants of the program that fires a trigger, set when it is loaded. */
#pragma once

#include <linux/types.h>

struct fire_constants {
	__u64 result; /* of the program: as the recording program's */
};
