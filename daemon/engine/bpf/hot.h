/* SPDX-License-Identifier: GPL-2.0-only */
/* What hot.c tells the programs of hot.bpf.c, beside what all that write rings are told. */
#pragma once

#include <linux/types.h>

struct hot_constants {
	__u64 tracepoint_id;
};
