/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of one event: an ARRAY_OF_MAPS with a slot per possible CPU, and in it one
 * frozen array map per CPU that records. See proto/ring.h for what is inside.
 */
#pragma once

#include <linux/perf_event.h>

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/order.h"

struct rings {
	int outer;	      /* the ARRAY_OF_MAPS */
	unsigned n;	      /* CPUs that have a ring */
	unsigned *cpu;	      /* their numbers, upward */
	int *fd;	      /* their maps */
	uint64_t *generation; /* of what counts on that CPU for this event; CPU_STATES_NONE: nothing
			       * that lives */
};

/* Bytes before the data of a ring whose event has a format of this size. */
uint32_t rings_header_size(size_t format_size);

/* Bytes that the rings of `event` (sizes and the mask of CPUs filled in) take of memory. */
uint64_t rings_memory(const struct pp_event *event);

/* Bytes of memory that a map of so many takes. */
uint64_t rings_pages(uint64_t bytes);

/*
 * Makes the rings of `event` (id, sizes, sources, times, spec and the mask of CPUs filled in):
 * every map created, its header written, frozen, and in its slot. attr and tp (or NULL) go into
 * the headers. -ENOMEM (the kernel, or a cgroup's limit), another -errno of the kernel.
 */
int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret);

/*
 * Those that are there already, by their outer map (which becomes theirs, also on failure) and
 * what meta says of them. -errno.
 */
int rings_open(int outer, const struct meta_map *maps, size_t n, struct rings *ret);

/*
 * Makes rings for more CPUs of `event`, which has none there yet, and puts them among the others in
 * `r`; not into their slots: nothing is recorded there before rings_fill(). On failure nothing is
 * changed. -errno as above.
 */
int rings_add(const struct pp_event *event, const struct pp_cpumask *cpus,
	      const struct perf_event_attr *attr, const struct tracepoint *tp, struct rings *rings);

/* All of them into their slots, whether they are there already or not. -errno. */
int rings_fill(const struct rings *rings);

/* Takes the slots of these CPUs out of use. */
void rings_empty(const struct rings *rings, const struct pp_cpumask *cpus);

/*
 * Waits until every program that found these rings has ended: what writes to them from then on came
 * later. -errno.
 */
int rings_settle(const struct rings *rings);

/* What meta shall say of them: r->n elements. -errno. */
int rings_maps(const struct rings *rings, const struct pp_event *event, struct meta_map *ret);

void rings_done(struct rings *rings);
