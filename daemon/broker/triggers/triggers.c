// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decides which events are armed, and for which triggers. Must not know how triggers fire. */
#include "daemon/broker/triggers/triggers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/link/timer.h"
#include "daemon/broker/triggers/ready.h"
#include "daemon/broker/triggers/targets.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* Turns come first, but for one other order after so many. */
#define TURNS_MAX 16

/* For a window whose end is unknown, or later than thought. */
#define LOOK_AGAIN 1000000000ULL

/* Whose tapes the slots of a trigger have. While an order is under way: before or after it. */
struct aim {
	bool known; /* the last order was carried out */
	struct {
		uint64_t ids[PP_TARGETS_MAX]; /* tape_id() */
		size_t n;
	} is, will_be;
};

/* ── what is due ────────────────────────────────────────────────────────────────────────── */

/* A second tape of an event waits until the first is saved; a pause makes none. Second names show what the event
 * is, and have no tapes. */
static bool is_turn_due(const struct event *e)
{
	return e->truth.now & PP_NOW_TURNED && !e->truth.shares && !e->arm_tried &&
	       (e->truth.now & PP_NOW_STOPPED || !e->tape);
}

/* What is added to an armed event. It is armed anew for another number of sets of rings: there is room
 * for a second one that nobody needed before, or nobody needs it any more. */
static enum pp_order_type find_lacking(const struct triggers *t, struct event *e, uint32_t needs)
{
	bool swap = e->truth.now & PP_NOW_SWAP;

	if (!(needs & PP_ARM_SWAP))
		e->no_swap = false;
	if (needs & PP_ARM_SWAP ? !swap && lifecycle_may_swap(t->lifecycle, e) : swap)
		return PP_ORDER_DISARM;
	if (needs & PP_ARM_WINDOWS && !(e->truth.now & PP_NOW_WINDOWS))
		return PP_ORDER_ARM;
	return needs & PP_ARM_STOPS && !(e->truth.now & PP_NOW_STOPS) ? PP_ORDER_ARM : 0;
}

static enum pp_order_type find_due(const struct triggers *t, struct event *e)
{
	bool armed = e->truth.now & PP_NOW_ARMED;
	uint32_t needs;

	if (e->state != PP_EVENT_RUNNING && e->state != PP_EVENT_PAUSED)
		return 0;
	if (is_turn_due(e))
		return PP_ORDER_TURN;
	if (targets_is_trigger(e))
		return e->aim_due && !e->arm_tried && *e->trigger.targets ? PP_ORDER_AIM : 0;
	if (e->truth.shares || e->truth.now & (PP_NOW_TURNED | PP_NOW_CLOSING))
		return 0;
	if (e->arm_tried)
		return 0;
	needs = targets_needs(t, e);
	if (armed)
		return needs ? find_lacking(t, e, needs) : PP_ORDER_DISARM;
	return needs && e->state == PP_EVENT_RUNNING ? PP_ORDER_ARM : 0;
}

/* A firing may be read while the order that arms its target again is under way, whose answer says
 * that it is armed. To turn what is not turned does nothing. */
static void expect_turn(struct event *e)
{
	if (e->was_stopped && e->truth.now & PP_NOW_ARMED)
		e->truth.now |= PP_NOW_STOPPED;
	if (e->was_fired && e->truth.now & PP_NOW_ARMED)
		e->truth.now ^= PP_NOW_ARMED | PP_NOW_TURNED;
	if (e->closes && e->truth.now & PP_NOW_ARMED)
		e->truth.now ^= PP_NOW_ARMED | PP_NOW_CLOSING;
	if (e->truth.now & PP_NOW_CLOSING &&
	    (e->was_fired || e->closes < pp_clock_ns(CLOCK_MONOTONIC)))
		e->truth.now ^= PP_NOW_CLOSING | PP_NOW_TURNED;
}

/* Turned events first, in one go, since the tapes of one firing are saved together; then what is to
 * be armed, and last the triggers, which then know all tapes. skip: so many of these types. */
static struct event *find_first(struct triggers *t, size_t skip, enum pp_order_type *ret)
{
	static const enum pp_order_type order[] = { PP_ORDER_TURN, PP_ORDER_DISARM, PP_ORDER_ARM,
						    PP_ORDER_AIM };
	const struct registry *r = &t->lifecycle->registry;
	size_t first = registry_after(r, t->after), best = ARRAY_SIZE(order);
	struct event *found = NULL;

	for (size_t i = 0; i < r->n_settled && best > skip; i++) {
		struct event *e = r->by_id[(first + i) % r->n_settled];
		enum pp_order_type due;

		expect_turn(e);
		due = find_due(t, e);
		for (size_t k = skip; due && k < best; k++)
			if (order[k] == due) {
				best = k;
				found = e;
			}
	}
	*ret = best < ARRAY_SIZE(order) ? order[best] : 0;
	return found;
}

/* A trigger that fires all the time does not keep others from being armed. */
static struct event *find_next(struct triggers *t, enum pp_order_type *ret)
{
	struct event *e = NULL;

	targets_list_triggers(t);
	ready_find_tapes(t);
	if (t->turns >= TURNS_MAX)
		e = find_first(t, 1, ret);
	if (!e)
		e = find_first(t, 0, ret);
	t->turns = e && *ret == PP_ORDER_TURN ? t->turns + 1 : 0;
	return e;
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

static uint64_t memory_used(const struct triggers *t)
{
	return t->lifecycle->charges.quota->sum.used[QUOTA_MEMORY];
}

static const char *what_fails(enum pp_order_type type, const struct event *e)
{
	if (type == PP_ORDER_AIM)
		return "does not reach all of its targets when it fires";
	if (type != PP_ORDER_TURN)
		return "is not armed for its triggers, which would freeze or pause it when they fire";
	if (e->truth.now & PP_NOW_STOPPED)
		return "was stopped by a trigger, and is not paused yet";
	return "was frozen by a trigger, and that cannot be saved yet";
}

/* Without an engine nothing is wrong with the event; when the engine returns, all are looked at. */
static void refused(struct triggers *t, struct event *e, int error, const char *sentence)
{
	const struct pp_spec *spec = &e->truth.spec;

	if (error == EDQUOT)
		t->memory = memory_used(t);
	if (error != EAGAIN && error != EBUSY && error != e->arm_error)
		log_event(LOG_WARNING, spec->ns, spec->name,
			  "%s/%s (id %" PRIu64 ") %s; this is tried again: %s", spec->ns,
			  spec->name, e->truth.id, what_fails(t->type, e), sentence);
	e->arm_error = error;
	e->arm_tried = true;
	e->aim_due = targets_is_trigger(e);
	if (e->aim)
		e->aim->known = false;
}

static void on_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct triggers *t = (struct triggers *)waiter;
	struct event *e = TAKE_PTR(t->about);

	if (!outcome->event) /* it is about to go */
		return;
	if (outcome->error) {
		refused(t, e, outcome->error, outcome->sentence);
		/* It is armed all the same, for those that need no more. */
		if (t->type == PP_ORDER_ARM && e->truth.now & PP_NOW_ARMED)
			targets_aim_anew(t, e);
		return;
	}
	e->arm_error = 0;
	if (e->truth.now & PP_NOW_CLOSING)
		e->closes = e->closes ?: pp_clock_ns(CLOCK_MONOTONIC) + LOOK_AGAIN;
	/* A turned event keeps its tape, or counts as late until it is armed again. */
	if (t->type == PP_ORDER_AIM) {
		e->aim_due = false;
		if (e->aim) {
			e->aim->is = e->aim->will_be;
			e->aim->known = true;
		}
	} else if (t->type != PP_ORDER_TURN)
		targets_aim_anew(t, e);
}

/* The id that an event's tape has in the kernel: of the name that it had first when it was armed. */
static uint64_t tape_id(const struct event *e)
{
	return e->armed_as ?: e->truth.id;
}

static int give_aim(struct triggers *t, struct event *trigger)
{
	const struct registry *r = &t->lifecycle->registry;
	const struct pp_spec *spec = &trigger->truth.spec;
	uint64_t targets[PP_TARGETS_MAX], tapes[PP_TARGETS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < r->n_settled; i++) {
		const struct event *e = r->by_id[i];

		if (!(e->truth.now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING)) ||
		    !triggers_match(trigger, e))
			continue;
		if (n < PP_TARGETS_MAX) {
			targets[n] = e->truth.id;
			tapes[n] = tape_id(e);
		}
		n++;
	}
	if (n > PP_TARGETS_MAX)
		log_event(LOG_WARNING, spec->ns, spec->name,
			  "Trigger %s/%s has %zu targets, and reaches the oldest %d of them; "
			  "make another trigger for the others.",
			  spec->ns, spec->name, n, PP_TARGETS_MAX);
	n = MIN(n, (size_t)PP_TARGETS_MAX);
	if (!trigger->aim)
		trigger->aim = calloc(1, sizeof(*trigger->aim));
	if (trigger->aim) {
		memcpy(trigger->aim->will_be.ids, tapes, n * sizeof(*tapes));
		trigger->aim->will_be.n = n;
	}
	return lifecycle_aim(t->lifecycle, trigger, targets, n, &t->waiter);
}

static int give_order(struct triggers *t, struct event *e)
{
	switch (t->type) {
	case PP_ORDER_TURN:
		return lifecycle_turn(t->lifecycle, e, &t->waiter);
	case PP_ORDER_DISARM:
		return lifecycle_disarm(t->lifecycle, e, &t->waiter);
	case PP_ORDER_ARM:
		return lifecycle_arm(t->lifecycle, e, targets_needs(t, e), &t->waiter);
	default:
		return give_aim(t, e);
	}
}

static void order(struct triggers *t, struct event *e, enum pp_order_type type)
{
	char sentence[PP_SENTENCE_SIZE];
	int r;

	t->about = e;
	t->type = type;
	t->after = e->truth.id;
	e->was_fired = e->was_stopped = false;
	e->closes = 0;
	if (type == PP_ORDER_ARM && !(e->truth.now & PP_NOW_ARMED))
		e->armed_as = 0; /* its tape will be a new one */
	t->waiter = (struct waiter){ .done = on_done, .uid = e->truth.spec.creator };
	r = give_order(t, e);
	if (r >= 0)
		return;
	t->about = NULL;
	lifecycle_explain(t->lifecycle, r, e->truth.spec.ns, e->truth.spec.name, sentence,
			  sizeof(sentence));
	refused(t, e, -r, sentence);
}

/* ── from outside ───────────────────────────────────────────────────────────────────────── */

static void forget_refusals(struct triggers *t)
{
	const struct registry *r = &t->lifecycle->registry;

	t->memory = 0;
	for (size_t i = 0; i < r->n_settled; i++)
		r->by_id[i]->arm_tried = false;
}

/* After an enumeration everything is looked at again: the kernel has gone on meanwhile. */
static void hear_engine(struct triggers *t)
{
	struct lifecycle *l = t->lifecycle;

	if (t->generation == l->generation || !orders_is_up(l->orders))
		return;
	t->generation = l->generation;
	forget_refusals(t);
	for (size_t i = 0; i < l->registry.n_settled; i++)
		l->registry.by_id[i]->aim_due = targets_is_trigger(l->registry.by_id[i]);
}

static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	triggers_continue(userdata);
	return 0;
}

/* If no record ends a window, the order that turns the event does. */
static void wait_for_windows(struct triggers *t)
{
	const struct registry *r = &t->lifecycle->registry;
	uint64_t first = UINT64_MAX, now = pp_clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < r->n_settled; i++)
		if (r->by_id[i]->truth.now & PP_NOW_CLOSING)
			first = MIN(first, r->by_id[i]->closes);
	if (first == UINT64_MAX) {
		timer_stop(t->timer);
		return;
	}
	if (!t->timer && timer_add(t->loop, &t->timer, on_timer, t) < 0)
		log_error("Cannot wait for the end of what triggers let go on: no memory; it ends "
			  "with the next record beyond it, or the next order.");
	else
		timer_start(t->timer, first > now ? (first - now) / 1000 + 1 : 0);
}

void triggers_done(struct triggers *t)
{
	t->timer = sd_event_source_disable_unref(t->timer);
}

void triggers_continue(struct triggers *t)
{
	struct lifecycle *l = t->lifecycle;
	enum pp_order_type type;
	struct event *e;

	if (t->stepping || !l->synced)
		return;
	t->stepping = true;
	hear_engine(t);
	if (t->memory > memory_used(t))
		forget_refusals(t);
	while (!t->about && orders_is_patient(l->orders) && (e = find_next(t, &type)))
		order(t, e, type);
	t->stepping = false;
	/* Without an engine nobody would end them: all is looked at again when it returns. */
	if (!t->about && orders_is_patient(l->orders))
		wait_for_windows(t);
	else
		timer_stop(t->timer);
	if (orders_is_patient(l->orders))
		ready_tell(t);
}

/* What a firing does to its targets. */
struct noted {
	uint64_t closes; /* when its window is over; 0: it has none */
	bool stops;	 /* it pauses them */
};

static void note_target(struct event *e, const struct noted *n)
{
	uint64_t closes = n->closes;

	e->was_stopped |= n->stops;
	if (!closes || !(e->truth.now & PP_NOW_WINDOWS))
		e->was_fired = true;
	else if (!(e->truth.now & PP_NOW_CLOSING))
		e->closes = closes;
	expect_turn(e);
}

/* By tape_id(). NULL: it has gone. */
static struct event *find_armed(const struct registry *r, uint64_t id)
{
	struct event *e = registry_by_id(r, id);

	for (size_t i = 0; !e && i < r->n_settled; i++)
		if (r->by_id[i]->armed_as == id)
			e = r->by_id[i];
	return e;
}

/* One that has gone is in the slots until they are filled anew. */
static void note_targets(const struct registry *r, struct event *trigger, const struct noted *noted,
			 const uint64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event *e = find_armed(r, ids[i]);

		if (e)
			note_target(e, noted);
		else
			trigger->aim_due = true;
	}
}

/* Only those that it has turned: for each of the others an order would be given in vain. Whom an
 * earlier broker has aimed a trigger at is not known until that is done anew. A trigger that has gone
 * turns nothing (trigger_disown()); what it turned before was told before its end. */
void triggers_note(struct triggers *t, uint64_t trigger, uint64_t fired)
{
	const struct registry *r = &t->lifecycle->registry;
	struct event *by = registry_by_id(r, trigger);
	const struct aim *a = by ? by->aim : NULL;
	struct noted noted;

	if (!by || by->trigger.action == PP_ACTION_NOTIFY) /* that has no targets */
		return;
	noted.closes = by->trigger.after ? fired + by->trigger.after : 0;
	noted.stops = by->trigger.action == PP_ACTION_PAUSE;
	if (a && a->known) {
		note_targets(r, by, &noted, a->is.ids, a->is.n);
		if (t->about == by)
			note_targets(r, by, &noted, a->will_be.ids, a->will_be.n);
		return;
	}
	for (size_t i = 0; i < r->n_settled; i++)
		if (triggers_match(by, r->by_id[i]))
			note_target(r->by_id[i], &noted);
}

void triggers_note_closed(struct triggers *t, uint64_t id)
{
	struct event *e = find_armed(&t->lifecycle->registry, id);

	if (e)
		note_target(e, &(struct noted){});
}

void triggers_fired(struct triggers *t, uint64_t trigger, uint64_t fired)
{
	triggers_note(t, trigger, fired);
	triggers_continue(t);
}

void triggers_retry(struct triggers *t)
{
	forget_refusals(t);
	triggers_continue(t);
}
