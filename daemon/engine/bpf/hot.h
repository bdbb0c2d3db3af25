/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants of the programs in hot.bpf.c, beside those of ring.h. */
#pragma once

#include <linux/types.h>

struct hot_constants {
	__u64 tracepoint_id;
};
