/* SPDX-License-Identifier: GPL-2.0-only */
/* What overflow.c tells the programs of overflow.bpf.c, beside what all that write rings are
 * told, and what they keep. */
#ifndef PP_BPF_OVERFLOW_H
#define PP_BPF_OVERFLOW_H

#include <linux/types.h>

/* Options. What the counter says of the time between two samples: */
struct overflow_constants {
	__u8 counter_is_period; /* what it counted in between is the period */
	__u8 count_missed;	/* and the period is fixed: so much is missing */
	__u8 has_addr;		/* the event comes with an address: PERF_SAMPLE_ADDR */
	__u8 reserved[5];
};

struct overflow_counter {
	__u64 counter;
	__u64 has_run; /* 0, 1 */
	__u64 cookie;  /* of the link whose counter it is: a CPU that comes back gets another */
};

/* What a filter sees of a sample. */
struct overflow_payload {
	__u64 ip;
};

#endif
