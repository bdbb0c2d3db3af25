/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a name stands for: the answer to DESCRIPTORS is a file of these, in host byte order. */
#pragma once

#include <stdint.h>

enum pp_descriptor_kind {
	PP_DESCRIPTOR_RING = 1,	   /* a map */
	PP_DESCRIPTOR_CATALOG = 2, /* likewise */
	PP_DESCRIPTOR_PROGRAMS =
		3,		   /* a PROG_ARRAY, through which entries find recording programs */
	PP_DESCRIPTOR_LINK = 4,	   /* a link that holds an entry */
	PP_DESCRIPTOR_COUNTER = 5, /* a link whose perf event counts on a CPU or in a task */
};

enum pp_alive { PP_ALIVE_UNKNOWN, PP_ALIVE_YES, PP_ALIVE_NO };

struct pp_descriptor {
	uint32_t kind;
	int32_t cpu; /* of a ring, or of a perf event; -1: none, or any */
	uint32_t id; /* the kernel's, of the map or link */
	int32_t tid; /* the task to which the perf event is bound; 0: none, or it has ended */
	/* a ring: of the CPU, when the counters there were attached: 0, and 1 more each time that it goes
	 * offline; UINT64_MAX: unknown */
	uint64_t generation;
	uint64_t perf_id; /* of the perf event, as in PERF_EVENT_IOC_ID; 0: none, or unknown */
	uint32_t
		alive; /* enum pp_alive: a perf event that counts, or will count; a ring: its CPU's counters
			   * are of the CPU's present generation */
	uint32_t reserved;
};
