// SPDX-License-Identifier: LGPL-2.1-or-later
/* Creates, deletes and reconciles. Must not know peers, policy or files. */
#include "daemon/broker/lifecycle.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/macro.h"

#define TRIES 2 /* an order whose engine died under it is sent again once */

/* An order under way or waiting, and the event it reserves. */
struct job {
	struct order order; /* first: an order of ours is a job */
	struct event *event;
	struct waiter *waiter;
};

static struct job *job_of(struct order *order)
{
	return (struct job *)order;
}

/* ── endings ────────────────────────────────────────────────────────────────────────────── */

static void tell(struct job *job, int error, const char *sentence)
{
	struct outcome outcome = { .error = error, .sentence = sentence, .event = job->event };

	job->waiter->done(job->waiter, &outcome);
}

static void created(struct lifecycle *l, struct job *job)
{
	const struct pp_event *e = &job->event->truth;

	log_event(LOG_INFO, e->spec.ns, e->spec.name, "Created %s/%s (id %" PRIu64 "): %s.",
		  e->spec.ns, e->spec.name, e->id, e->spec.event);
	job->event->seen = l->generation;
	tell(job, 0, NULL);
	free(job);
	l->changed(l->userdata);
}

static void not_created(struct lifecycle *l, struct job *job, int error, const char *sentence)
{
	/* One that the engine has all the same stays; somebody else's, then. */
	bool reserved = job->event->state == PP_EVENT_CREATING;

	tell(job, error, sentence);
	if (reserved)
		registry_remove(&l->registry, job->event);
	free(job);
	l->changed(l->userdata);
}

static void deleted(struct lifecycle *l, struct job *job)
{
	const struct pp_event *e = &job->event->truth;

	log_event(LOG_INFO, e->spec.ns, e->spec.name, "Deleted %s/%s (id %" PRIu64 ").", e->spec.ns,
		  e->spec.name, e->id);
	tell(job, 0, NULL);
	registry_remove(&l->registry, job->event);
	free(job);
	l->changed(l->userdata);
}

static void not_deleted(struct lifecycle *l, struct job *job, int error, const char *sentence)
{
	event_set_state(job->event, PP_EVENT_RUNNING);
	tell(job, error, sentence);
	free(job);
	l->changed(l->userdata);
}

static void failed(struct lifecycle *l, struct job *job, int error, const char *sentence)
{
	if (job->order.type == PP_ORDER_CREATE)
		not_created(l, job, error, sentence);
	else
		not_deleted(l, job, error, sentence);
}

/* ── what the engine answers ────────────────────────────────────────────────────────────── */

static void on_answered(void *userdata, struct order *order, const struct pp_answer *answer)
{
	struct lifecycle *l = userdata;
	struct job *job = job_of(order);

	if (order->type == PP_ORDER_DELETE) {
		/* One that is not there any more is deleted. */
		if (answer->type == PP_ANSWER_DONE || answer->error == ENOENT)
			deleted(l, job);
		else
			not_deleted(l, job, answer->error, answer->sentence);
		return;
	}
	if (answer->type == PP_ANSWER_FAILED)
		not_created(l, job, answer->error, answer->sentence);
	else if (registry_settle(&l->registry, job->event, &answer->event) < 0)
		not_created(l, job, EIO,
			    "The engine gave the new event an id that another event has; restart "
			    "perfpersistd, which then finds out what is there.");
	else
		created(l, job);
}

static void on_given_up(void *userdata, struct order *order)
{
	struct lifecycle *l = userdata;

	failed(l, job_of(order), EAGAIN,
	       "The engine that creates and deletes events is not running just now, and the event "
	       "may or may not be there when it returns; look at the daemon's log, and try again.");
}

/* ── reconciliation ─────────────────────────────────────────────────────────────────────── */

static struct job *job_about(struct lifecycle *l, const struct event *e)
{
	for (struct order *o = orders_first(l->orders); o; o = o->next)
		if (job_of(o)->event == e)
			return job_of(o);
	return NULL;
}

/* The engine has no such event any more. */
static void drop(struct lifecycle *l, struct event *e)
{
	struct job *job = job_about(l, e);

	if (job) {
		assert(job->order.type == PP_ORDER_DELETE);
		orders_remove(l->orders, &job->order);
		deleted(l, job);
		return;
	}
	log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
		  "%s/%s (id %" PRIu64 ") is gone, and it was not deleted through this daemon.",
		  e->truth.spec.ns, e->truth.spec.name, e->truth.id);
	registry_remove(&l->registry, e);
	l->changed(l->userdata);
}

/* The rights that count are the namespace's; those of an event's files are of its creation. */
static void compare_rights(const struct event *e)
{
	const struct pp_spec *made = &e->truth.spec;

	if (made->group != e->ns->group || made->mode != e->ns->mode)
		log_event(LOG_WARNING, made->ns, made->name,
			  "The registry's files of %s/%s are for group %u with mode %04o, as when it "
			  "was created, and its namespace is now for group %u with mode %04o; delete "
			  "the event and create it again where that matters.",
			  made->ns, made->name, made->group, made->mode, e->ns->group, e->ns->mode);
}

static int adopt(struct lifecycle *l, const struct pp_event *truth)
{
	struct event *e;
	int err = registry_add(&l->registry, &truth->spec, &e);

	if (err < 0)
		return err;
	err = registry_settle(&l->registry, e, truth);
	if (err < 0) {
		registry_remove(&l->registry, e);
		return err;
	}
	e->seen = l->generation;
	compare_rights(e);
	log_event(LOG_INFO, truth->spec.ns, truth->spec.name, "Adopted %s/%s (id %" PRIu64 "): %s.",
		  truth->spec.ns, truth->spec.name, truth->id, truth->spec.event);
	return 0;
}

static bool is_named(const struct event *e, const struct pp_spec *spec)
{
	return strcmp(e->truth.spec.ns, spec->ns) == 0 &&
	       strcmp(e->truth.spec.name, spec->name) == 0;
}

static void on_syncing(void *userdata)
{
	struct lifecycle *l = userdata;

	l->generation++;
}

/* Whether the engine has told of this one already, and now says otherwise. */
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

static int on_found(void *userdata, const struct pp_event *truth)
{
	struct lifecycle *l = userdata;
	struct registry *r = &l->registry;
	struct event *e = registry_by_id(r, truth->id);

	if (e && is_named(e, &truth->spec)) {
		e->truth = *truth;
		e->seen = l->generation;
		return 0;
	}
	if (e && is_contradicted(l, e))
		return 0;
	if (e) /* the id was given anew: what we know under it is not there any more */
		drop(l, e);
	e = registry_by_name(r, truth->spec.ns, truth->spec.name);
	if (e && e->state == PP_EVENT_CREATING) {
		e->seen = l->generation;
		return registry_settle(r, e, truth);
	}
	if (e && is_contradicted(l, e))
		return 0;
	if (e)
		drop(l, e);
	return adopt(l, truth);
}

/* Decides an order from what was found, or leaves it in the queue, to be sent (again). */
static void review(struct lifecycle *l, struct job *job)
{
	bool there = job->event->state != PP_EVENT_CREATING && job->event->seen == l->generation;

	if (job->order.type == PP_ORDER_CREATE && there) {
		bool ours = job->order.sent > 0;

		orders_remove(l->orders, &job->order);
		if (ours)
			created(l, job);
		else
			not_created(l, job, EEXIST,
				    "An event of this name is there already: the engine found it "
				    "when it started. Delete it first, or take another name.");
	} else if (job->order.type == PP_ORDER_DELETE && !there) {
		orders_remove(l->orders, &job->order);
		deleted(l, job);
	} else if (job->order.sent >= TRIES || job->event->truth.id != job->order.id) {
		/* (The second: found by an enumeration that broke off, and then gone.) */
		orders_remove(l->orders, &job->order);
		failed(l, job, EAGAIN,
		       "The engine ended twice while it was at this; nothing was changed. Look at "
		       "the daemon's log for why, and try again.");
	}
}

static void on_synced(void *userdata)
{
	struct lifecycle *l = userdata;
	struct order *order = orders_first(l->orders);

	while (order) {
		struct order *next = order->next;

		review(l, job_of(order));
		order = next;
	}
	for (size_t i = l->registry.n_settled; i > 0; i--) {
		struct event *e = l->registry.by_id[i - 1];

		if (e->seen != l->generation)
			drop(l, e);
	}
	l->synced = true;
}

static void on_changed(void *userdata)
{
	struct lifecycle *l = userdata;

	l->changed(l->userdata);
}

/* ── what others ask for ────────────────────────────────────────────────────────────────── */

static void submit(struct lifecycle *l, struct job *job, enum pp_order_type type, struct event *e,
		   struct waiter *waiter)
{
	job->event = e;
	job->waiter = waiter;
	job->order.type = type;
	job->order.id = e->truth.id;
	job->order.spec = type == PP_ORDER_CREATE ? &e->truth.spec : NULL;
	orders_submit(l->orders, &job->order);
}

int lifecycle_create(struct lifecycle *l, const struct pp_spec *spec, struct waiter *waiter)
{
	struct job *job;
	struct event *e;
	int err;

	if (registry_by_name(&l->registry, spec->ns, spec->name))
		return -EEXIST;
	if (!orders_is_patient(l->orders))
		return -EAGAIN;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	err = registry_add(&l->registry, spec, &e);
	if (err < 0) {
		free(job);
		return err;
	}
	submit(l, job, PP_ORDER_CREATE, e, waiter);
	return 0;
}

int lifecycle_delete(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	struct job *job;

	if (e->state == PP_EVENT_CREATING)
		return -EBUSY;
	if (e->state == PP_EVENT_DELETING)
		return -EALREADY;
	if (!orders_is_patient(l->orders))
		return -EAGAIN;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	event_set_state(e, PP_EVENT_DELETING);
	submit(l, job, PP_ORDER_DELETE, e, waiter);
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int lifecycle_init(struct lifecycle *l, sd_event *loop, const char *engine_path)
{
	static const struct orders_hooks hooks = {
		.syncing = on_syncing,
		.found = on_found,
		.synced = on_synced,
		.answered = on_answered,
		.given_up = on_given_up,
		.changed = on_changed,
	};

	return orders_new(loop, engine_path, &hooks, l, &l->orders);
}

void lifecycle_done(struct lifecycle *l)
{
	if (l->orders) {
		orders_abandon(l->orders);
		orders_free(l->orders);
		l->orders = NULL;
	}
	registry_done(&l->registry);
}
