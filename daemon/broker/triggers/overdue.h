/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watches the pairs of triggers (struct pp_pair in daemon/trigger.h) for those whose end is missing, and
 * has the engine fire for them. Only reads the tables, which are mapped: so a look disturbs no program.
 * It sleeps until the first pair can be overdue, and for OVERDUE_INTERVAL between two looks, so that is
 * how late it can be. Must not know how triggers fire.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/lifecycle/lifecycle.h"

#define OVERDUE_INTERVAL 10000000ULL /* ns; longer if there are many tables */

struct overdue {
	struct waiter waiter; /* first: a waiter of ours is this struct */

	/* The caller sets these; borrowed. */
	sd_event *loop;
	struct lifecycle *lifecycle;
	const char *registry;

	sd_event_source *timer;
	bool ordered; /* an order is under way; the timer is off */
	bool soon; /* the timer runs for a table that is new, and is not put off by other changes */
	size_t looked;	/* tables, in the last look */
	uint64_t after; /* whose trigger's it was, or the last one */
	uint64_t told;	/* that a table cannot be mapped: log_is_due() */
};

/* Call this when events came, went or changed. */
void overdue_continue(struct overdue *o);

/* Accepts one that is all zeroes. */
void overdue_done(struct overdue *o);
