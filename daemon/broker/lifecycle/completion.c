// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How orders complete: the effects of the engine's answer, or of its absence, on the event, its
 * charges and the waiter. Must not know where the answer came from.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/lifecycle/lifecycle-internal.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

void job_free(struct job *job)
{
	free(job->parsed);
	free(job);
}

static void tell(struct job *job, int error, const char *sentence)
{
	struct outcome outcome = { .error = error, .sentence = sentence, .event = job->event };

	if (job->waiter)
		job->waiter->done(job->waiter, &outcome);
}

static void tell_descriptors(struct job *job, const struct pp_answer *answer)
{
	struct outcome outcome = { .cpus = &answer->event.rings };

	job->waiter->done(job->waiter, &outcome);
}

static void tell_handout(struct job *job, const struct pp_answer *answer)
{
	struct outcome outcome = { .event = job->event, .total = answer->total };

	job->waiter->done(job->waiter, &outcome);
}

void lifecycle_notify(struct lifecycle *l, enum pp_notice_kind kind, const struct event *e)
{
	if (l->notice)
		l->notice(l->userdata, kind, e);
}

/* Some orders block nothing else, so the event may go while they wait. */
static void forget_orders_aside(struct lifecycle *l, const struct event *e)
{
	struct order *order = l->orders ? orders_first(l->orders) : NULL;

	while (order) {
		struct order *next = order->next;
		struct job *job = job_of(order);

		if (job->event == e) {
			assert(order_is_aside(order));
			orders_remove(l->orders, order);
			job->event = NULL;
			tell(job, ENOENT, "The event has been deleted meanwhile.");
			job_free(job);
		}
		order = next;
	}
}

void lifecycle_forget(struct lifecycle *l, struct event *e)
{
	forget_orders_aside(l, e);
	tapes_remove(&l->tapes, e->truth.id); /* if it was one itself */
	charges_end(&l->charges, e);
	registry_remove(&l->registry, e);
}

/* The engine's statement about an event's rings holds for all their names. */
static void tell_names(struct lifecycle *l, const struct event *target, int notice)
{
	const struct pp_event *t = &target->truth;

	for (size_t i = 0; i < l->registry.n_settled; i++) {
		struct event *e = l->registry.by_id[i];
		struct pp_event truth = *t;

		if (e->truth.shares != t->id)
			continue;
		truth.id = e->truth.id;
		truth.shares = t->id;
		truth.memory = 0;
		memcpy(truth.spec.ns, e->truth.spec.ns, sizeof(truth.spec.ns));
		memcpy(truth.spec.name, e->truth.spec.name, sizeof(truth.spec.name));
		truth.spec.flags = e->truth.spec.flags;
		truth.spec.owner = e->truth.spec.owner;
		truth.spec.group = e->truth.spec.group;
		truth.spec.mode = e->truth.spec.mode;
		truth.spec.creator = e->truth.spec.creator;
		e->truth = truth;
		if (e->state == PP_EVENT_RUNNING || e->state == PP_EVENT_PAUSED)
			event_rest(e);
		if (notice)
			lifecycle_notify(l, notice, e);
	}
}

/* ── done ───────────────────────────────────────────────────────────────────────────────── */

/* The event is created and has its id in the registry. */
static void created(struct lifecycle *l, struct job *job)
{
	struct event *e = job->event;
	const struct pp_event *t = &e->truth;

	if (t->shares)
		log_event(LOG_INFO, t->spec.ns, t->spec.name,
			  "Created %s/%s (id %" PRIu64 "), which shares the rings of id %" PRIu64
			  ".",
			  t->spec.ns, t->spec.name, t->id, t->shares);
	else
		log_event(LOG_INFO, t->spec.ns, t->spec.name, "Created %s/%s (id %" PRIu64 "): %s.",
			  t->spec.ns, t->spec.name, t->id, t->spec.event);
	e->seen = l->generation;
	if (t->now & PP_NOW_INCOMPLETE && !t->shares)
		e->missing = MISSING_DUE; /* a CPU came during the creation */
	charges_settle(&l->charges, e);
	/* The namespace's rights may have changed while the order waited. */
	if (namespace_differs(e->ns, &t->spec) && lifecycle_rights(l, e->ns) < 0)
		log_warning("The files of %s/%s keep owner %u, group %u and mode %04o: there is no "
			    "memory, or no engine.",
			    t->spec.ns, t->spec.name, t->spec.owner, t->spec.group, t->spec.mode);
	lifecycle_notify(l, PP_NOTICE_CREATED, e);
	tell(job, 0, NULL);
}

static void hold(struct lifecycle *l, const struct pp_orphans *orphans)
{
	if (orphans->id && charges_hold(&l->charges, orphans, l->generation) < 0)
		log_error(
			"No memory to charge the orphan rings of an event of %s; they are charged "
			"when the engine returns.",
			orphans->ns);
}

/* The engine died during the change; the next one completed it, but could not start the event. */
static void left_paused(struct lifecycle *l, struct job *job)
{
	const struct event *e = job->event;

	log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
		  "%s/%s (id %" PRIu64
		  ") is paused since its change, during which the engine ended; "
		  "resume it.",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	lifecycle_notify(l, PP_NOTICE_PAUSED, e);
	tell(job, EAGAIN,
	     "The event is changed, but it is paused now: the engine ended during the change, and "
	     "the next one could not start the event again, see the daemon's log. Resume it.");
}

/* An engine that could not finish an earlier change has paused it. */
static void found_paused(struct lifecycle *l, struct event *e)
{
	event_rest(e);
	log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
		  "%s/%s (id %" PRIu64
		  ") is paused: an earlier change of it could not be finished; resume it.",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	lifecycle_notify(l, PP_NOTICE_PAUSED, e);
	tell_names(l, e, PP_NOTICE_PAUSED);
}

/* What an answer says of an event. A trigger may have paused it, whatever was ordered. */
static void take(struct lifecycle *l, const struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	bool before = pp_is_paused_by_trigger(&e->truth);

	e->truth = answer->event;
	if (!pp_is_paused_by_trigger(&e->truth) && e->truth.paused && order_is_aside(&job->order) &&
	    e->state == PP_EVENT_RUNNING)
		found_paused(l, e);
	if (before || !pp_is_paused_by_trigger(&e->truth))
		return;
	if (!order_is_aside(&job->order) || e->state == PP_EVENT_RUNNING)
		event_rest(e);
	if (l->paused_by)
		l->paused_by(l->userdata, e, &answer->by);
	if (job->order.type == PP_ORDER_PAUSE)
		return;
	lifecycle_notify(l, PP_NOTICE_PAUSED, e);
	tell_names(l, e, PP_NOTICE_PAUSED);
}

static void changed(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	bool pause = job->order.type == PP_ORDER_PAUSE;
	enum pp_notice_kind notice = !pause	       ? PP_NOTICE_CHANGED
				     : job->order.what ? PP_NOTICE_PAUSED
						       : PP_NOTICE_RESUMED;

	if (answer) {
		take(l, job, answer);
		hold(l, &answer->orphans);
	}
	event_rest(e);
	charges_drop_samples(e);
	charges_lower(&l->charges, e, job->raised);
	log_event(LOG_INFO, e->truth.spec.ns, e->truth.spec.name, "%s %s/%s (id %" PRIu64 ").",
		  !pause	    ? "Changed"
		  : job->order.what ? "Paused"
				    : "Resumed",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	lifecycle_notify(l, notice, e);
	tell_names(l, e, notice);
	if (!pause && e->truth.paused && !job->was_paused && !pp_is_paused_by_trigger(&e->truth))
		left_paused(l, job);
	else
		tell(job, 0, NULL);
}

struct event *lifecycle_successor(const struct lifecycle *l, const struct event *e)
{
	for (size_t i = 0; i < l->registry.n_settled; i++)
		if (l->registry.by_id[i]->truth.shares == e->truth.id)
			return l->registry.by_id[i];
	return NULL;
}

/* Whether it has an order about CPUs, which is forgotten with it. */
static bool waits_for_cpus(const struct lifecycle *l, const struct event *e)
{
	for (struct order *o = l->orders ? orders_first(l->orders) : NULL; o; o = o->next)
		if (o->type == PP_ORDER_CPUS && job_of(o)->event == e)
			return true;
	return false;
}

/*
 * The rings of a deleted event live on under their other names. As in the engine, the oldest name
 * becomes the event itself, and its creator is charged.
 */
static void inherit(struct lifecycle *l, const struct event *gone)
{
	struct event *successor = lifecycle_successor(l, gone);
	struct registry *r = &l->registry;
	uint64_t shares;

	if (!successor)
		return;
	shares = successor->truth.id;
	successor->truth.shares = 0;
	successor->truth.memory = gone->truth.memory;
	successor->missing = waits_for_cpus(l, gone) ? MISSING_DUE : gone->missing;
	successor->missing_error = gone->missing_error;
	/* What is armed goes on, and may have been fired at; its tape is still to be turned. */
	successor->truth.now = gone->truth.now;
	successor->armed_as = gone->armed_as ?: gone->truth.id;
	successor->closes = gone->closes;
	successor->was_fired |= gone->was_fired;
	successor->was_stopped |= gone->was_stopped;
	charges_settle(&l->charges, successor);
	for (size_t i = 0; i < r->n_settled; i++)
		if (r->by_id[i]->truth.shares == gone->truth.id)
			r->by_id[i]->truth.shares = shares;
	/* Names under creation: the engine no longer knows the old id, and will refuse them. */
}

/* The rings do not live on: the successor's user would exceed a limit. Names under creation or
 * deletion learn this when their turn comes. */
static void end_other_names(struct lifecycle *l, const struct event *gone)
{
	struct registry *r = &l->registry;

	for (size_t i = r->n_settled; i > 0; i--) {
		struct event *e = r->by_id[i - 1];

		if (e->truth.shares != gone->truth.id ||
		    (e->state != PP_EVENT_RUNNING && e->state != PP_EVENT_PAUSED))
			continue;
		log_event(LOG_NOTICE, e->truth.spec.ns, e->truth.spec.name,
			  "%s/%s (id %" PRIu64 ") has ended with %s/%s, whose buffers it shared: "
			  "the limits of who has the oldest of these names have no room for them.",
			  e->truth.spec.ns, e->truth.spec.name, e->truth.id, gone->truth.spec.ns,
			  gone->truth.spec.name);
		if (l->ended)
			l->ended(l->userdata, e);
		lifecycle_notify(l, PP_NOTICE_DELETED, e);
		lifecycle_forget(l, e);
	}
}

static void deleted(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	const struct pp_event *t = &e->truth;

	log_event(LOG_INFO, t->spec.ns, t->spec.name, "%s %s/%s (id %" PRIu64 ").",
		  job->order.what & PP_DELETE_CLAIMED ? "Gave back" : "Deleted", t->spec.ns,
		  t->spec.name, t->id);
	if (answer && answer->type == PP_ANSWER_DONE) {
		hold(l, &answer->orphans);
		if (!t->shares && answer->event.shares)
			inherit(l, e);
		else if (!t->shares)
			end_other_names(l, e);
	}
	lifecycle_notify(l, PP_NOTICE_DELETED, e);
	tell(job, 0, NULL);
	lifecycle_forget(l, e);
}

/* An adoption: nobody has seen an event. */
static void abandoned(struct lifecycle *l, struct job *job)
{
	tell(job, 0, NULL);
	lifecycle_forget(l, job->event);
}

/* Updates the facts about the event but not its state: another order may be waiting. */
static void joined(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	bool more = answer &&
		    memcmp(&e->truth.rings, &answer->event.rings, sizeof(e->truth.rings)) != 0;

	if (answer)
		take(l, job, answer);
	charges_lower(&l->charges, e, job->raised);
	if (more) {
		char cpus[256];

		pp_format_cpus(&e->truth.rings, cpus, sizeof(cpus));
		log_event(LOG_INFO, e->truth.spec.ns, e->truth.spec.name,
			  "%s/%s (id %" PRIu64 ") records on CPU %s now.", e->truth.spec.ns,
			  e->truth.spec.name, e->truth.id, cpus);
		lifecycle_notify(l, PP_NOTICE_CHANGED, e);
	}
	tell_names(l, e, more ? PP_NOTICE_CHANGED : 0);
	tell(job, 0, NULL);
}

/* Armed, disarmed, or turned; what a turned event had recorded is a tape already. */
static void rearmed(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	bool replaced = answer && answer->event.set != e->truth.set;
	bool was_armed = e->truth.now & PP_NOW_ARMED;

	if (answer)
		take(l, job, answer);
	charges_lower(&l->charges, e, job->raised);
	if (job->order.type == PP_ORDER_ARM && !was_armed && e->no_swap)
		lifecycle_log_no_swap(e);
	if (replaced)
		lifecycle_notify(l, PP_NOTICE_CHANGED, e);
	tell_names(l, e, replaced ? PP_NOTICE_CHANGED : 0);
	tell(job, 0, NULL);
}

/* An event without a second set of rings records again. */
static void released(struct lifecycle *l, struct job *job)
{
	struct event *e = registry_by_id(&l->registry, job->order.id);

	tapes_remove(&l->tapes, job->order.id);
	if (e && event_is_frozen(e)) {
		e->truth.now ^= PP_NOW_ARMED | PP_NOW_TURNED;
		tell_names(l, e, 0);
	}
	tell(job, 0, NULL);
}

static void given_rights(struct lifecycle *l, const struct job *job)
{
	for (size_t i = 0; i < l->registry.n_settled; i++) {
		struct pp_spec *spec = &l->registry.by_id[i]->truth.spec;

		if (strcmp(spec->ns, job->spec.ns) != 0)
			continue;
		spec->owner = job->spec.owner;
		spec->group = job->spec.group;
		spec->mode = job->spec.mode;
	}
}

void job_done(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	if (job->event && !order_asks(&job->order))
		job->event->claimer = 0;
	switch (job->order.type) {
	case PP_ORDER_CREATE:
	case PP_ORDER_ALIAS:
		created(l, job);
		break;
	case PP_ORDER_CHANGE:
	case PP_ORDER_PAUSE:
		changed(l, job, answer);
		break;
	case PP_ORDER_DELETE:
		if (job->event->state == PP_EVENT_CREATING)
			abandoned(l, job);
		else
			deleted(l, job, answer);
		break;
	case PP_ORDER_ADOPT:
		job->event->adoption = answer->event.id;
		tell(job, 0, NULL);
		break;
	case PP_ORDER_ATTACH:
		if (order_makes_event(&job->order))
			created(l, job);
		else
			tell(job, 0, NULL);
		break;
	case PP_ORDER_HANDOUT:
	case PP_ORDER_DESCRIBE:
		tell_handout(job, answer);
		break;
	case PP_ORDER_RIGHTS:
		given_rights(l, job);
		break;
	case PP_ORDER_CPUS:
		joined(l, job, answer);
		break;
	case PP_ORDER_SIDEBAND:
	case PP_ORDER_AUX:
		tell_descriptors(job, answer);
		break;
	case PP_ORDER_ARM:
	case PP_ORDER_DISARM:
	case PP_ORDER_TURN:
		rearmed(l, job, answer);
		break;
	case PP_ORDER_RELEASE:
		released(l, job);
		break;
	case PP_ORDER_FIRE:
		if (l->fired && answer)
			l->fired(l->userdata, job->event, &answer->by);
		tell(job, 0, NULL);
		break;
	case PP_ORDER_AIM:
		tell(job, 0, NULL);
		break;
	case PP_ORDER_ENUMERATE:
		break;
	}
	job_free(job);
	lifecycle_delete_ended(l);
	l->changed(l->userdata);
}

/* ── failed ─────────────────────────────────────────────────────────────────────────────── */

void job_failed(struct lifecycle *l, struct job *job, int error, const char *sentence)
{
	struct event *e = job->event;
	bool reserved = e && e->state == PP_EVENT_CREATING;

	if (e && !order_asks(&job->order))
		e->claimer = 0;
	/* An event that exists stays. After a failed creation it is somebody else's. */
	if (e && !reserved) {
		if (!order_is_aside(&job->order))
			event_rest(e);
		if (job->order.type == PP_ORDER_CHANGE)
			charges_drop_samples(e);
		charges_lower(&l->charges, e, job->raised);
	}
	if (job->order.type == PP_ORDER_RIGHTS)
		log_warning("The registry's files of the namespace %s keep the group and mode they "
			    "have: %s",
			    job->spec.ns, sentence);
	tell(job, error, sentence);
	if (reserved)
		lifecycle_forget(l, e);
	job_free(job);
	lifecycle_delete_ended(l);
	l->changed(l->userdata);
}

void job_failed_partly(struct lifecycle *l, struct job *job, const struct pp_answer *answer)
{
	struct event *e = job->event;
	bool news;

	if (e && pp_order_is_in_place(job->order.type) && answer->event.id) {
		news = answer->event.set != e->truth.set ||
		       memcmp(&e->truth.rings, &answer->event.rings, sizeof(e->truth.rings)) != 0;
		take(l, job, answer);
		hold(l, &answer->orphans);
		if (!order_is_aside(&job->order)) /* it is told as it will be */
			event_rest(e);
		if (news)
			lifecycle_notify(l, PP_NOTICE_CHANGED, e);
		tell_names(l, e, news ? PP_NOTICE_CHANGED : 0);
	}
	job_failed(l, job, answer->error, answer->sentence);
}
