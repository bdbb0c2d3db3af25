/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rings that are missing after CPUs came online. The engine gets one order per event, however many
 * CPUs came, and one event at a time, so that clients' orders go in between. A refusal (memory over
 * a limit, a failure of the engine's) is logged once. The broker tries again when memory was given
 * back, and every now and then.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

struct missing_rings {
	struct waiter waiter; /* first: a waiter of ours is this struct */

	/* The caller sets these; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* always up to date */

	struct event *about; /* subject of the order under way, or NULL */
	bool stepping;
	uint64_t generation; /* of events: the enumeration that was handled last */
	uint64_t memory;     /* total memory when the last refusal for memory came */
	uint64_t after;	     /* id of the last order: every event gets its turn */
};

/* CPUs came online: marks every event that wants one of them. */
void missing_rings_add(struct missing_rings *a);

/* Retries refused orders. */
void missing_rings_retry(struct missing_rings *a);

/* Call this when an order has completed, or events came or went (lifecycle.changed). */
void missing_rings_continue(struct missing_rings *a);

/* Finds the online CPUs that the event (or the event whose rings it shares) wants and has no ring
 * on. Returns whether there are any; *ret_error: why, 0: the order is still to come. */
bool missing_rings_of(const struct lifecycle *l, const struct event *e,
		      const struct pp_cpumask *online, struct pp_cpumask *ret, int *ret_error);
