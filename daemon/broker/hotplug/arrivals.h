/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrivals: CPUs that came online, and the events that are to record on them. Each event is ordered
 * once, however many CPUs came, one event at a time, so that clients' orders come between. What
 * cannot be had (memory over a limit, a failure of the engine's) is said once, and tried again when
 * memory has been given back, and every now and then.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

struct arrivals {
	struct waiter waiter; /* first: our waiter is these arrivals */

	/* To be filled in; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* as of now, always */

	struct event *about; /* of the order under way, or NULL */
	bool stepping;
	uint64_t generation; /* of events: up to here the engine's word was heard */
	uint64_t memory;     /* that all had when the last one was refused for it */
	uint64_t after;	     /* the id that was ordered last: all get their turn */
};

/* CPUs came: all events that want any of those that are online are due. */
void arrivals_add(struct arrivals *a);

/* What was refused is tried again. */
void arrivals_retry(struct arrivals *a);

/* Whenever an order has ended, or events came or went (lifecycle.changed). */
void arrivals_continue(struct arrivals *a);

/* Which CPUs are online, and wanted by the event, or by that whose rings it shares, and have no
 * ring. Returns whether there are any; *ret_error: why, 0: they are about to. */
bool arrivals_lacking(const struct lifecycle *l, const struct event *e,
		      const struct pp_cpumask *online, struct pp_cpumask *ret, int *ret_error);
