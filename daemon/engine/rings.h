/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of one event: an ARRAY_OF_MAPS with a slot per possible CPU, and in it one
 * frozen array map per CPU that records. See proto/ring.h for what is inside.
 */
#ifndef PP_RINGS_H
#define PP_RINGS_H

#include <linux/perf_event.h>

#include "daemon/order.h"
#include "daemon/engine/tracefs.h"

struct rings {
	int outer;     /* the ARRAY_OF_MAPS */
	unsigned n;    /* CPUs that have a ring */
	unsigned *cpu; /* their numbers, upward */
	int *fd;       /* their maps */
};

/* Bytes before the data of a ring whose event has a format of this size. */
uint32_t rings_header_size(size_t format_size);

/*
 * Makes the rings of `event` (id, sizes, times, spec and the mask of CPUs filled in): every
 * map created, its header written, frozen, and in its slot. attr and tp (or NULL) go into the
 * headers. -ENOMEM (the kernel, or a cgroup's limit), another -errno of the kernel.
 */
int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret);
void rings_done(struct rings *r);

#endif
