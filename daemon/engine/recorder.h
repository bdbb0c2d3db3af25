/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every recorder is: a program that turns an event into records in the rings, and the
 * links that make it run. Three of them: generic.c (tracepoints, emitted from the format),
 * hot.c (tracepoints with a tp_btf program of their own), overflow.c (sampling events).
 * None of them knows names, pins or who asked.
 */
#ifndef PP_RECORDER_H
#define PP_RECORDER_H

#include <stdint.h>

#include "daemon/engine/tracefs.h"
#include "daemon/order.h"

/* Where a recorder writes, fixed when it is loaded. */
struct recorder_rings {
	int fd;		      /* ARRAY_OF_MAPS, a slot per possible CPU; empty slot: not recorded */
	uint32_t header_size; /* of each ring: see proto/ring.h */
	uint64_t data_size;
	uint32_t spill_size; /* no record may be larger */

	/* The rings that are in their slots already, for programs that go there directly. */
	const unsigned *cpu; /* their CPUs, upward */
	const int *ring_fd;
	unsigned n;
};

/* What a recorder will write; known before anything is made. */
struct recorder_plan {
	enum pp_recorder recorder;
	uint64_t sample_type;
	uint32_t spill_size;
	uint32_t missed_unknown; /* 1: this kernel does not tell who was shut out */
};

struct recorder {
	enum pp_recorder kind;

	/* Can it record this (tp: NULL unless it is a tracepoint)? 0 with *ret, -EOPNOTSUPP if
	 * another recorder must, another -errno if none can. */
	int (*plan)(const struct pp_spec *spec, const struct tracepoint *tp,
		    struct recorder_plan *ret);

	/* Loads the program; *ret_fd is the caller's. -errno of the kernel. */
	int (*load)(const struct pp_spec *spec, const struct tracepoint *tp,
		    const struct recorder_rings *rings, int *ret_fd);

	/* Makes it run: on this CPU, or everywhere at once if not per_cpu (cpu: any that is
	 * online). The link's fd is the caller's. -ENODEV: the CPU is offline; -E2BIG: the
	 * tracepoint has its 64 programs. */
	int (*attach)(const struct pp_spec *spec, const struct tracepoint *tp, int prog_fd,
		      unsigned cpu, int *ret_fd);
	bool per_cpu; /* attach once per CPU */
};

extern const struct recorder recorder_generic;
extern const struct recorder recorder_hot;
extern const struct recorder recorder_overflow;

#endif
