/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of one event: an ARRAY_OF_MAPS with a slot per possible CPU, and in it one frozen array
 * map per recorded CPU. proto/ring.h describes their contents.
 */
#pragma once

#include <linux/perf_event.h>

#include "daemon/engine/kernel/tracefs.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/order.h"

struct rings {
	int outer;	      /* the ARRAY_OF_MAPS */
	unsigned n;	      /* number of CPUs that have a ring */
	unsigned *cpu;	      /* their numbers, ascending */
	int *fd;	      /* their maps */
	uint64_t *generation; /* of what counts on that CPU for this event; CPU_STATES_NONE: nothing
			       * that lives */
};

/* Bytes in front of the data of a ring whose event has a format of this size. */
uint32_t rings_header_size(size_t format_size);

/* Bytes of memory of the rings of `event` (with its sizes and the mask of CPUs). */
uint64_t rings_memory(const struct pp_event *event);

/* Bytes of memory of a map with that many bytes of data. */
uint64_t rings_pages(uint64_t bytes);

/*
 * Makes the rings of `event` (with its id, sizes, sources, times, spec and the mask of CPUs): every
 * map is created, its header written, frozen, and in its slot. attr and tp (or NULL) go into the
 * headers. -ENOMEM (the kernel, or a cgroup's limit), another -errno of the kernel.
 */
int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret);

/*
 * Opens existing rings by their outer map (which becomes theirs, also on failure) and by meta.
 * -errno.
 */
int rings_open(int outer, const struct meta_map *maps, size_t n, struct rings *ret);

/* Opens rings by their outer map alone (which becomes theirs, also on failure), on the CPUs of
 * `like`, whose generations they get. -errno. */
int rings_open_like(int outer, const struct rings *like, struct rings *ret);

/*
 * Makes rings for CPUs that have none yet, and adds them to `r`, but not to their slots: they
 * record nothing before rings_fill(). On failure nothing is changed. -errno as above.
 */
int rings_add(const struct pp_event *event, const struct pp_cpumask *cpus,
	      const struct perf_event_attr *attr, const struct tracepoint *tp, struct rings *rings);

/* Puts all of them into their slots, even those that are there already. -errno. */
int rings_fill(const struct rings *rings);

/* Takes the slots of these CPUs out of use. */
void rings_empty(const struct rings *rings, const struct pp_cpumask *cpus);

/*
 * Waits until every program that found these rings has ended: only later programs write to them
 * then. -errno.
 */
int rings_settle(const struct rings *rings);

/* Describes the rings for meta: r->n elements. -errno. */
int rings_maps(const struct rings *rings, const struct pp_event *event, struct meta_map *ret);

void rings_done(struct rings *rings);
