/* SPDX-License-Identifier: GPL-2.0-only */
/* What overflow.c tells the programs of overflow.bpf.c, beside what all that write rings are
 * told, and what they keep. */
#pragma once

#include <linux/types.h>

/* Options. */
struct overflow_constants {
	__u8 count_missed; /* periods are fixed, and the counter says how many went by */
	__u8 is_clock;	   /* it counts ns, while the CPU idles too */
	__u8 has_addr;	   /* the event comes with an address: PERF_SAMPLE_ADDR */
	__u8 reserved[5];
};

struct overflow_counter {
	__u64 counter;
	__u64 has_run; /* 0, 1 */
	__u64 idled;   /* the sample was of the idle task: 0, 1 */
	__u64 clock;   /* the scheduler's, as it stood then */
	__u64 cookie;  /* of the link whose counter it is: a CPU that comes back gets another */
};

/* What a filter sees of a sample. */
struct overflow_payload {
	__u64 ip;
};
