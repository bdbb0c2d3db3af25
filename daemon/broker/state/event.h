/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event, as the broker knows it: what was ordered, what the engine said of it, and where
 * it stands in its life. Knows nothing of who asks for it.
 */
#pragma once

#include "daemon/order.h"

struct namespace;

struct event {
	enum pp_event_state state;
	struct namespace *ns;
	struct pp_event truth; /* from the engine; while creating only its spec, and id 0 */
	uint64_t seen;	       /* the reconciliation that found it last */

	/* What is charged for it, and to whom: charges.c's. */
	uint64_t charged, pending; /* of the first: for orders that have not ended */
	uint32_t programs, samples;
	uint32_t creator;
	bool is_charged;

	/* CPUs that came and that it is to record on: missing-rings.c's. */
	enum {
		MISSING_NONE,
		MISSING_DUE,	 /* to be ordered, as soon as it is its turn */
		MISSING_REFUSED, /* it could not be had, and is tried again */
	} missing;
	int missing_error; /* of the last try: positive errno value */
};

/* A new one, creating, of this spec. NULL: no memory. */
struct event *event_new(const struct pp_spec *spec, struct namespace *ns);
void event_free(struct event *e);

/*
 * The one place where an event's state changes:
 *   creating → running ⇄ changing ⇄ paused     (a change, a pause, a resumption, or its failure)
 *   running, paused → deleting → running, paused     (the deletion failed)
 * and, when a reconciliation finds it so, from creating, running or paused to running or paused.
 * Anything else is our own bug.
 */
void event_set_state(struct event *e, enum pp_event_state to);

/* Running or paused, as the engine says. */
void event_rest(struct event *e);

/* Those of the CPUs that it is to record on, and has no ring on. Returns whether there are any. */
bool event_lacks(const struct event *e, const struct pp_cpumask *cpus, struct pp_cpumask *ret);

/* What a change order can make of one spec to have the other: PP_CHANGE_* bits; and that done. */
uint32_t event_find_changes(const struct pp_spec *a, const struct pp_spec *b);
void event_take_changes(struct pp_spec *into, const struct pp_spec *from, uint32_t what);

/* Whether an event of the one spec records just what one of the other does; names and rights, and
 * who made it, do not count. */
bool event_is_equal(const struct pp_spec *a, const struct pp_spec *b);
