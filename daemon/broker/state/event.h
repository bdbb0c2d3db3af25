/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event in the broker's model: the order, the engine's facts, and its state. Must not know
 * requests.
 */
#pragma once

#include "daemon/order.h"

struct namespace;

/* Which triggers of a target are asked for. */
enum event_aimed_by {
	AIMED_BY_FREEZE, /* those that turn it to a second set of rings */
	AIMED_BY_WINDOW, /* those of them that let it go on */
	AIMED_BY_PAUSE,
	AIMED_BY_KINDS,
};

struct event {
	enum pp_event_state state;
	struct namespace *ns;
	struct pp_event truth; /* from the engine; while creating only the spec, and id 0 */
	uint64_t seen;	       /* the last reconciliation that found it */

	/* Whose connection has begun a claim, and got links that are still the event's; 0: nobody's. */
	uint64_t claimer;

	uint64_t adoption; /* while one is under way: the id that it is going to have */

	/* Its charges; charges.c owns these. */
	uint64_t charged, pending; /* pending: the part of charged for running orders */
	uint32_t programs, samples;
	uint32_t samples_due; /* what a running order may bring; 0: nothing */
	uint32_t creator;
	bool is_charged;

	/* CPUs came that it must record on; missing-rings.c owns this. */
	enum {
		MISSING_NONE,
		MISSING_DUE,	 /* to be ordered when its turn comes */
		MISSING_REFUSED, /* the order failed, and is retried */
	} missing;
	int missing_error; /* of the last attempt: positive errno value */

	struct pp_msg_target target; /* with PP_EVENT_BOUND */
	uint64_t
		was_ended; /* the generation in which its end was ordered, because that has ended */
	/* With PP_EVENT_AUX: it could not get its areas on these CPUs, and tries again; auxtrace.c owns these. */
	struct pp_cpumask aux_refused; /* since the last look at all: other CPUs come first */
	struct pp_cpumask aux_lacks;   /* at the last attempt */
	int aux_error;		       /* of that: positive errno value */

	struct pp_trigger_spec trigger; /* with PP_EVENT_TRIGGER */
	/* Its part in triggers; triggers.c owns these. */
	struct event *next_trigger;
	const struct tape *tape; /* its oldest: ready_find_tapes() */
	struct {
		/* Id of a trigger of this kind that has it as a target, or 0; no trigger of the kind with
		 * a lower id than `searched` has, but that one. */
		uint64_t found, searched;
	} aimed_by[AIMED_BY_KINDS];
	/* A target that was another name's when it was armed: the id of that one; else 0. */
	uint64_t armed_as;
	/* A target: when its window is over, CLOCK_MONOTONIC, ns; 0: none was opened, or unknown. */
	uint64_t closes;
	/* A trigger: whom its firings turn; NULL: never aimed. Freed with the event. */
	struct aim *aim;
	/* A trigger of pairs: its table, mapped by overdue.c; NULL: not yet. Unmapped with the event. */
	const struct pp_pair *pairs;
	/* A target: armed without the second set of rings that it needs, because its creator's limits have
	 * no room. */
	bool no_swap;
	/* A trigger: firings without a record in the ring buffer, as last seen. */
	uint64_t unread;
	bool aim_due; /* a trigger: its targets, or their tapes, are others now */
	/* A target: a trigger of it has fired, or its window has ended, since the last order. */
	bool was_fired;
	bool was_stopped; /* likewise, and that trigger pauses it */
	bool arm_tried; /* a target: it could not be armed; tried again when memory was given back */
	int arm_error;	/* of that attempt: positive errno value */

	/* A firing that is yet to be told: of a target what has paused it, during a reconciliation; of a
	 * trigger that only notifies its last one. NULL: none. Freed with the event. */
	struct pp_fired *to_tell;
	/* Such a trigger; fired.c owns these. */
	uint64_t told;	    /* time of the firing that was told last */
	uint64_t n_to_tell; /* firings since then */

	bool is_tape; /* of struct tape, with pins of its own */
	bool is_kept; /* likewise, and nobody saves it unasked */
};

#define EVENT_UNREAD_UNKNOWN UINT64_MAX /* of an event that somebody else has made */

/* A new event in state CREATING with this spec. NULL: no memory. */
struct event *event_new(const struct pp_spec *spec, struct namespace *ns);
void event_free(struct event *e);

/*
 * The one place where an event's state changes:
 *   creating → running ⇄ changing ⇄ paused     (a change, a pause, a resumption, or its failure)
 *   running, paused → deleting → running, paused     (the deletion failed)
 * A reconciliation can also turn creating, running or paused into running or paused.
 * Any other transition is our own bug.
 */
void event_set_state(struct event *e, enum pp_event_state to);

/* Whether a trigger has frozen it, and it has no second set of rings: it is itself what is to be
 * released, also while that is not a tape yet. Under its first name: others may be in namespaces with other
 * rights. */
static inline bool event_is_frozen(const struct event *e)
{
	return !e->truth.shares && e->truth.now & PP_NOW_TURNED &&
	       !(e->truth.now & (PP_NOW_SWAP | PP_NOW_STOPPED));
}

/* Keeps the firing until it is told, instead of an earlier one. 0; -ENOMEM. */
int event_keep_firing(struct event *e, const struct pp_fired *fired);

/* Sets the state to running or paused, as the engine says. */
void event_rest(struct event *e);

/* The CPUs among these that it must record on and has no ring on. Returns whether there are any. */
bool event_lacks(const struct event *e, const struct pp_cpumask *cpus, struct pp_cpumask *ret);

/* The PP_CHANGE_* bits of a change order that turns spec a into spec b as far as possible; the
 * second function applies the change to a. */
uint32_t event_find_changes(const struct pp_spec *a, const struct pp_spec *b);
void event_take_changes(struct pp_spec *into, const struct pp_spec *from, uint32_t what);

/* Whether events of the two specs record exactly the same; names, rights and creator do not
 * count. */
bool event_is_equal(const struct pp_spec *a, const struct pp_spec *b);
