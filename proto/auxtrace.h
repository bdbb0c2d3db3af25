/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one CPU's PMU has traced into its AUX area: a sealed memfd of this header, perf records, the
 * trace, the oldest first, and the samples of events beside it. It is a copy of one moment, for which
 * the PMU was stopped.
 *
 * The records are those that the kernel has written into the ring beside the area: ITRACE_START,
 * which says what ran when the tracing began, and those since the copy before this one, above all
 * the AUX of the stop for this copy. Each ends in a sample_id of PP_SIDEBAND_SAMPLE_TYPE
 * (sideband.h), with the kernel's identifier.
 *
 * The samples are n_beside words, the kernel's identifiers of the event's other sources, in their
 * order; then records as these have written them (ring.h has the sources' attr), of all of them in one
 * order, the newest first. Each sample begins with its identifier, and each other record ends with it.
 *
 * A reader must not trust anything here. From the first release on it only grows: new fields take
 * the place of `reserved`, or go behind.
 */
#pragma once

#include <stdint.h>

#define PP_AUXTRACE_MAGIC 0x4543415254585541ULL /* "AUXTRACE" */
#define PP_AUXTRACE_VERSION 1

#define PP_AUXTRACE_WRAPPED (1U << 0) /* the area is full: what is older has been overwritten */
#define PP_AUXTRACE_PAUSED (1U << 1)  /* the event was paused before the copy, and is still */
/* The time_… convert the trace's time stamps, too. Without it the kernel does not say how, and
 * `counter` is CLOCK_MONOTONIC, ns. */
#define PP_AUXTRACE_TSC (1U << 2)

struct pp_auxtrace_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size; /* where the records begin: sizeof this, multiple of 8 */
	uint64_t size;	      /* bytes of the file, header included */
	uint64_t event_id;    /* of the event's oldest name, as in its rings */
	uint32_t cpu;
	uint32_t flags;	  /* PP_AUXTRACE_* */
	uint64_t area;	  /* bytes of the AUX area */
	uint64_t head;	  /* where the trace ends: the kernel's aux_head at that moment */
	uint64_t trace;	  /* bytes of the trace, at most `area` */
	uint64_t records; /* bytes of the records */
	uint64_t began;	  /* CLOCK_MONOTONIC, ns: when the area was made */
	/* the gap that this copy has made: the PMU was stopped from … to; 0 if paused */
	uint64_t stopped, resumed;
	/* Convert the counter of the trace's time stamps (x86: TSC; arm64: CNTVCT) to
	 * CLOCK_MONOTONIC as those in struct perf_event_mmap_page do to the kernel's clock:
	 * time_zero + (counter * time_mult >> time_shift), modulo 2^64. They are exact for the
	 * moment of the copy; before it, NTP may have corrected CLOCK_MONOTONIC */
	uint64_t time_zero;
	uint32_t time_mult; /* not 0 */
	uint16_t time_shift;
	uint16_t reserved0;
	uint64_t copies;  /* how many were made before this one, of this area: gaps in its trace */
	uint64_t counter; /* when the copy was made, the PMU being stopped */
	uint64_t samples; /* bytes of the samples, with the words before them; 0: none are beside */
	uint32_t n_beside;
	/* how long the area was stopped from `began` to this copy, by pauses and copies; ms, rounded up,
	 * at most UINT32_MAX */
	uint32_t untraced;
};
_Static_assert(sizeof(struct pp_auxtrace_header) == 144, "without padding");
