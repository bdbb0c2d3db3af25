/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants of the programs in overflow.bpf.c, beside those of ring.h, and the state that they
 * keep. */
#pragma once

#include <linux/types.h>

struct overflow_constants {
	__u64 chain_half; /* bytes of a mark and of the frames that both halves have at most */

	__u64 user_stack; /* overflow_user: bytes of it, at most */

	/* Options, a byte each. */
	__u8 count_missed; /* periods are fixed, and the counter tells how many passed */
	__u8 is_clock;	   /* it counts ns, while the CPU idles too */
	__u8 has_addr;	   /* the event comes with an address: PERF_SAMPLE_ADDR */
	__u8 drops;	   /* writes no records: another program of the event does */
	__u8 chain_kernel; /* the chain has this half */
	__u8 chain_user;
	__u8 reserved[2];
};

struct overflow_counter {
	__u64 counter;
	__u64 has_run; /* 0 or 1 */
	__u64 idled;   /* the sample hit the idle task: 0 or 1 */
	__u64 clock;   /* the scheduler's, at that time */
	__u64 cookie;  /* of the counter's link: a CPU that comes online again gets another one */
};

/* The fields that a filter sees of a sample. */
struct overflow_payload {
	__u64 ip;
};
