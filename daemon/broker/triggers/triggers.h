/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the targets of triggers armed, and turns what a trigger has fired at into tapes. Derives
 * what is to be done from the registry and the engine's facts, one order at a time, so it makes no
 * difference which daemon has died in between.
 *
 * An event has one tape at a time: while that is not saved a second firing turns the event, and
 * later ones are counted as late. Its creator pays for all of it.
 *
 * A target may go on recording for a while (pp_trigger_spec.after). A record ends that window and tells
 * it; on a quiet machine the order TURN does, when the time is over.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

struct triggers {
	struct waiter waiter; /* first: a waiter of ours is this struct */

	/* The caller sets these; borrowed. */
	struct lifecycle *lifecycle;
	sd_event *loop;
	/* A tape can be saved. e is its event, or, if that is gone, the tape's. May be NULL. */
	void (*ready)(void *userdata, const struct tape *tape);
	void *userdata;

	struct event *about; /* subject of the order under way, or NULL */
	enum pp_order_type type;
	struct event *first; /* triggers, by id; only while it steps */
	bool stepping;
	uint64_t generation;	/* of events: the enumeration that was handled last */
	uint64_t memory;	/* total memory when the last refusal came; 0: none */
	uint64_t after;		/* id of the last order: every event gets its turn */
	unsigned turns;		/* orders TURN without another between them */
	sd_event_source *timer; /* for windows that no record ends */
};

/* Call this when an order has completed, or events came or went (lifecycle.changed). */
void triggers_continue(struct triggers *t);

void triggers_done(struct triggers *t);

/* This trigger has fired at this time (CLOCK_MONOTONIC, ns): its targets may be turned, or are when its
 * window is over. Follow it by triggers_continue(): one for many firings, since that looks at all
 * events. */
void triggers_note(struct triggers *t, uint64_t trigger, uint64_t fired);

/* A record has ended the window of the event with this id. Follow it likewise. */
void triggers_note_closed(struct triggers *t, uint64_t id);

/* Both. */
void triggers_fired(struct triggers *t, uint64_t trigger, uint64_t fired);

/* Tries what was refused again. */
void triggers_retry(struct triggers *t);

/* Whether the event is a target of the trigger: of its namespace, named by it, and of its creator,
 * unless that is root. */
bool triggers_match(const struct event *trigger, const struct event *e);

/* How many targets a trigger has, and how many of them are armed. */
void triggers_count(const struct lifecycle *l, const struct event *trigger, unsigned *ret,
		    unsigned *ret_armed);
