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

	/* To be filled in; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* as of now, always */

	struct event *about; /* of the order under way, or NULL */
	bool stepping;
	uint64_t generation; /* of events: up to here the engine's word was heard */
	uint64_t memory;     /* that all had when the last one was refused for it */
	uint64_t after;	     /* the id that was ordered last: all get their turn */
};

/* CPUs came online: every event that wants one of them is due. */
void missing_rings_add(struct missing_rings *a);

/* Tries again what was refused. */
void missing_rings_retry(struct missing_rings *a);

/* To be called when an order has ended, or events came or went (lifecycle.changed). */
void missing_rings_continue(struct missing_rings *a);

/* Which CPUs are online, and wanted by the event, or by that whose rings it shares, and have no
 * ring. Returns whether there are any; *ret_error: why, 0: they are about to. */
bool missing_rings_of(const struct lifecycle *l, const struct event *e,
		      const struct pp_cpumask *online, struct pp_cpumask *ret, int *ret_error);
