/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants of a program that writes rings (ring.bpf.h), set when it is loaded for an event. They
 * become part of its instructions (daemon/engine/emit/template.h), so that an unused option costs
 * nothing.
 */
#pragma once

#include <linux/types.h>

/* Stands for the PROG_ARRAY of the trigger in the instructions. */
#define RING_TELL_MARK 0x6c6c65742d707021
/* Likewise, for that of the event's sides. */
#define RING_SIDES_MARK 0x65646973732d7021

struct ring_constants {
	__u64 data_mask;   /* of each ring: data_size - 1 */
	__u64 header_size; /* of each ring: bytes before the data */
	__u64 source_id;   /* `identified`: each record's first word */
	__u64 max_rate;	   /* `limited`: records a second and CPU */
	__u64 tick;	   /* `limited`: nanoseconds of a jiffy */
	__u64 event_id;	   /* `wakes`: the id in a wakeup */
	__u64 sides_base;  /* `closes`: where the source's sides begin in their PROG_ARRAY */

	/* Options, a byte each. */
	__u8 extended;	 /* any of the options below */
	__u8 identified; /* records begin with PERF_SAMPLE_IDENTIFIER */
	__u8 nests;	 /* others write the same ring, or this program inside itself */
	__u8 limited;
	__u8 wakes;
	__u8 filtered;	 /* filter_hook() decides, or fires */
	__u8 everywhere; /* every CPU should have a ring: events on one without are counted */
	__u8 tells;  /* each record, or attempt to write one, ends with the telling of a firing */
	__u8 closes; /* of a closing side: a record beyond the window goes to the next side */
};
