// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reconciliation: updates the model of events to the engine's enumeration, at start-up and after
 * each reconnect, and decides the orders that were under way.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/lifecycle/lifecycle-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define TRIES 2 /* an order is sent again once if the engine died during it */

void reconcile_begin(struct lifecycle *l)
{
	l->generation++;
}

/* ── what comes and goes ────────────────────────────────────────────────────────────────── */

static struct job *job_about(struct lifecycle *l, const struct event *e)
{
	/* Others: see lifecycle_forget. */
	for (struct order *o = orders_first(l->orders); o; o = o->next)
		if (job_of(o)->event == e && !order_is_aside(o))
			return job_of(o);
	return NULL;
}

/* The engine no longer has this event. */
static void drop(struct lifecycle *l, struct event *e)
{
	struct job *job = job_about(l, e);

	if (job)
		orders_remove(l->orders, &job->order);
	if (job && job->order.type == PP_ORDER_DELETE) {
		job_done(l, job, NULL);
		return;
	}
	if (job)
		job_failed(l, job, ENOENT,
			   "The event is not there any more, and it was not deleted through this "
			   "daemon; create it again if it is wanted.");
	log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
		  "%s/%s (id %" PRIu64 ") is gone, and it was not deleted through this daemon.",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	lifecycle_notify(l, PP_NOTICE_DELETED, e);
	lifecycle_forget(l, e);
	l->changed(l->userdata);
}

static void take_parts(struct event *e, const struct pp_answer *found)
{
	if (e->truth.spec.flags & PP_EVENT_TRIGGER)
		e->trigger = found->trigger;
	if (e->truth.spec.flags & PP_EVENT_BOUND)
		e->target = found->target;
}

/* What has paused it is told when all triggers are known. */
static int keep_pause(struct event *e, const struct pp_answer *found)
{
	return pp_is_paused_by_trigger(&found->event) ? event_keep_firing(e, &found->by) : 0;
}

static int adopt(struct lifecycle *l, const struct pp_answer *found)
{
	const struct pp_event *truth = &found->event;
	struct event *e;
	int r = registry_add(&l->registry, &truth->spec, &e);

	if (r < 0)
		return r;
	r = registry_settle(&l->registry, e, truth);
	if (r >= 0)
		r = charges_adopt(&l->charges, e);
	if (r >= 0)
		r = keep_pause(e, found);
	if (r < 0) {
		lifecycle_forget(l, e);
		return r;
	}
	e->seen = l->generation;
	take_parts(e, found);
	e->unread = EVENT_UNREAD_UNKNOWN;
	log_event(LOG_INFO, truth->spec.ns, truth->spec.name, "Adopted %s/%s (id %" PRIu64 "): %s.",
		  truth->spec.ns, truth->spec.name, truth->id, truth->spec.event);
	if (l->synced)
		lifecycle_notify(l, PP_NOTICE_CREATED, e);
	return 0;
}

static bool has_changed(const struct pp_event *from, const struct pp_event *to)
{
	return from->set != to->set || memcmp(&from->rings, &to->rings, sizeof(to->rings)) != 0 ||
	       event_find_changes(&from->spec, &to->spec) != 0;
}

/* Updates a known event. */
static int learn(struct lifecycle *l, struct event *e, const struct pp_answer *found)
{
	const struct pp_event *truth = &found->event;
	bool at_rest = e->state == PP_EVENT_RUNNING || e->state == PP_EVENT_PAUSED;
	bool changed = has_changed(&e->truth, truth);
	bool paused = e->truth.paused != truth->paused;
	bool ended = (e->truth.now ^ truth->now) & PP_NOW_ENDED;
	int r = pp_is_paused_by_trigger(&e->truth) ? 0 : keep_pause(e, found);

	if (r < 0)
		return r;
	e->truth = *truth;
	e->claimer = 0; /* the engine may have finished a change */
	e->seen = l->generation;
	/* A running change has its own charge, and sends its own notice when it completes. */
	if (e->state == PP_EVENT_CHANGING)
		return 0;
	r = charges_adopt(&l->charges, e);
	if (r < 0)
		return r;
	if (!at_rest)
		return 0;
	event_rest(e);
	if (changed || ended)
		lifecycle_notify(l, PP_NOTICE_CHANGED, e);
	if (paused)
		lifecycle_notify(l, truth->paused ? PP_NOTICE_PAUSED : PP_NOTICE_RESUMED, e);
	return 0;
}

/* ── what the engine enumerates ─────────────────────────────────────────────────────────── */

static bool is_named(const struct event *e, const struct pp_spec *spec)
{
	return strcmp(e->truth.spec.ns, spec->ns) == 0 &&
	       strcmp(e->truth.spec.name, spec->name) == 0;
}

/* Whether the engine has reported this event already, and now contradicts itself. */
static bool is_contradicted(const struct lifecycle *l, const struct event *e)
{
	if (e->seen != l->generation)
		return false;
	log_event(LOG_ERR, e->truth.spec.ns, e->truth.spec.name,
		  "The engine found two events that share the name %s/%s or the id %" PRIu64
		  "; the second one is left out.",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	return true;
}

int reconcile_found(struct lifecycle *l, const struct pp_answer *found)
{
	const struct pp_event *truth = &found->event;
	struct registry *registry = &l->registry;
	struct event *e = registry_by_id(registry, truth->id);
	int r;

	if (e && is_named(e, &truth->spec))
		return learn(l, e, found);
	if (e && is_contradicted(l, e))
		return 0;
	if (e) /* The engine reused the id: our old event is gone. */
		drop(l, e);
	e = registry_by_name(registry, truth->spec.ns, truth->spec.name);
	if (e && e->state == PP_EVENT_CREATING) {
		e->seen = l->generation;
		take_parts(e, found);
		r = registry_settle(registry, e, truth);
		return r < 0 ? r : charges_adopt(&l->charges, e);
	}
	if (e && is_contradicted(l, e))
		return 0;
	if (e)
		drop(l, e);
	return adopt(l, found);
}

int reconcile_held(struct lifecycle *l, const struct pp_orphans *orphans)
{
	return charges_hold(&l->charges, orphans, l->generation);
}

/* ── what that means for orders ─────────────────────────────────────────────────────────── */

/* Whether the event matches the change or pause that was ordered. */
static bool is_as_ordered(const struct job *job)
{
	const struct pp_event *t = &job->event->truth;
	uint32_t what = job->order.what;

	if (job->order.type == PP_ORDER_PAUSE)
		return t->paused == what;
	/* A new buffer can have the old size; its set of rings differs. */
	if (what & PP_CHANGE_BUFFER && t->set <= job->set)
		return false;
	return !(what & event_find_changes(&t->spec, &job->spec) & ~PP_CHANGE_BUFFER);
}

static bool is_creation(const struct job *job)
{
	return job->order.type == PP_ORDER_ADOPT || job->order.type == PP_ORDER_ATTACH ||
	       order_makes_event(&job->order);
}

/* Whether the engine carried the order out but could not answer. */
static bool is_carried_out(const struct lifecycle *l, const struct job *job)
{
	const struct event *e = job->event;
	bool there = e && e->state != PP_EVENT_CREATING && e->seen == l->generation;

	switch (job->order.type) {
	case PP_ORDER_CREATE:
	case PP_ORDER_ALIAS:
	case PP_ORDER_ATTACH:
		return there && job->order.sent > 0;
	case PP_ORDER_CHANGE:
	case PP_ORDER_PAUSE:
		return there && job->order.sent > 0 && is_as_ordered(job);
	case PP_ORDER_DELETE:
		return !there;
	default:
		return false;
	}
}

/* Completes an order by the enumeration, or leaves it in the queue to be sent (again). */
static void review(struct lifecycle *l, struct job *job)
{
	struct event *e = job->event;

	if (job->order.type == PP_ORDER_FIRE && job->order.sent > 0) {
		orders_remove(l->orders, &job->order);
		job_failed(l, job, EAGAIN,
			   "The engine ended during this request, and the trigger may or may not "
			   "have fired; see `perfctl trigger list`.");
	} else if (is_carried_out(l, job)) {
		orders_remove(l->orders, &job->order);
		job_done(l, job, NULL);
	} else if (is_creation(job) && e->state != PP_EVENT_CREATING && e->seen == l->generation) {
		orders_remove(l->orders, &job->order);
		job_failed(l, job, EEXIST,
			   "An event of this name is there already: the engine found it when it "
			   "started. Delete it first, or take another name.");
	} else if (job->order.type == PP_ORDER_ATTACH) {
		orders_remove(l->orders, &job->order);
		job_failed(
			l, job, EAGAIN,
			"The engine ended during this adoption; nothing was adopted. Look at the "
			"daemon's log for why, and try again.");
	} else if (job->order.sent >= TRIES || (is_creation(job) && e->truth.id)) {
		/* (The second: an enumeration that broke off found it, and then it went.) */
		orders_remove(l->orders, &job->order);
		job_failed(
			l, job, EAGAIN,
			"The engine ended twice during this request; nothing was changed. Look at "
			"the daemon's log for why, and try again.");
	}
}

/* The namespace's rights decide; the files of its events must follow. */
static void compare_rights(struct lifecycle *l)
{
	const struct namespace *ordered = NULL;

	for (size_t i = 0; i < l->registry.n_events; i++) {
		const struct event *e = l->registry.by_name[i];
		const struct pp_spec *made = &e->truth.spec;

		if (e->state == PP_EVENT_CREATING || e->ns == ordered ||
		    !namespace_differs(e->ns, made))
			continue;
		if (lifecycle_rights(l, e->ns) < 0)
			log_warning(
				"The registry's files of the namespace %s keep owner %u, group %u "
				"and mode %04o: there is no memory, or no engine.",
				e->ns->name, made->owner, made->group, made->mode);
		ordered = e->ns;
	}
}

static void tell_pauses(struct lifecycle *l)
{
	for (size_t i = 0; i < l->registry.n_settled; i++) {
		struct event *e = l->registry.by_id[i];
		_cleanup_free_ struct pp_fired *by = NULL;

		if (!pp_is_paused_by_trigger(&e->truth))
			continue;
		by = TAKE_PTR(e->to_tell);
		if (by && l->paused_by)
			l->paused_by(l->userdata, e, by);
	}
}

void reconcile_end(struct lifecycle *l)
{
	struct order *order;

	/* Forgetting an event removes its orders for new CPUs, too. */
	orders_rewind(l->orders);
	while ((order = orders_next(l->orders)))
		review(l, job_of(order));
	for (size_t i = l->registry.n_settled; i > 0; i--) {
		struct event *e = l->registry.by_id[i - 1];

		if (e->seen != l->generation)
			drop(l, e);
	}
	tell_pauses(l);
	charges_sweep(&l->charges, l->generation);
	tapes_sweep(&l->tapes, l->generation);
	compare_rights(l);
	lifecycle_delete_ended(l);
	l->synced = true;
}
