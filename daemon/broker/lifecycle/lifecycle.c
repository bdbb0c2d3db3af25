// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns operations on events into orders. Must not know peers, policy or files. */
#include "daemon/broker/lifecycle/lifecycle.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/broker/lifecycle/lifecycle-internal.h"
#include "daemon/cpus.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/user-program.h"

/* ── what the engine answers ────────────────────────────────────────────────────────────── */

static void on_answered(void *userdata, struct order *order, const struct pp_answer *answer)
{
	struct lifecycle *l = userdata;
	struct job *job = job_of(order);

	/* Deleting an event or tape that no longer exists is a success. */
	if (answer->type == PP_ANSWER_FAILED &&
	    !(order->type == PP_ORDER_DELETE && answer->error == ENOENT) &&
	    !(order->type == PP_ORDER_RELEASE && answer->error == ENOENT)) {
		job_failed_partly(l, job, answer);
		return;
	}
	if (order->type == PP_ORDER_CREATE && order->target)
		job->event->target = answer->target; /* with the cgroup's path and id */
	if (order_makes_event(order) &&
	    registry_settle(&l->registry, job->event, &answer->event) < 0) {
		job_failed(l, job, EIO,
			   "The engine gave the new event an id that another event has; restart "
			   "perfpersistd, which then finds out what is there.");
		return;
	}
	job_done(l, job, answer);
}

static void on_sending(void *userdata, struct order *order)
{
	const struct lifecycle *l = userdata;
	const struct job *job = job_of(order);
	const struct event *successor;

	if (order->type == PP_ORDER_CREATE || order->type == PP_ORDER_ADOPT)
		order->allowance =
			charges_allow(&l->charges, job->event->creator, job->event->programs);
	if (order->type == PP_ORDER_CREATE)
		order->allowance.perf_events = charges_perf_events(&l->charges, job->event);
	if (order->type == PP_ORDER_CHANGE || order->type == PP_ORDER_PAUSE)
		order->allowance = charges_allow(&l->charges, order->uid, 0);
	if (order->type != PP_ORDER_DELETE || job->event->state == PP_EVENT_CREATING)
		return;
	successor = lifecycle_successor(l, job->event);
	order->allowance = charges_allow(&l->charges, successor ? successor->creator : 0, 0);
	order->allowance.sources =
		!successor || charges_may_inherit(&l->charges, successor, job->event);
}

/* Whether a claimer may have the event already: it must not take the error for "not yours". */
static bool may_be_given(const struct order *order)
{
	return order->type == PP_ORDER_DELETE && order->what & PP_DELETE_CLAIMED && order->sent > 0;
}

static void on_given_up(void *userdata, struct order *order)
{
	if (may_be_given(order)) {
		job_failed(
			userdata, job_of(order), EINPROGRESS,
			"The engine was stopped during the claim, and nobody can tell whether the "
			"event is still the daemon's; hold its descriptors, and look for it when "
			"the engine returns.");
		return;
	}
	job_failed(userdata, job_of(order), EAGAIN,
		   "The engine that creates, changes and deletes events is not running just now, "
		   "and this may or may not be done when it returns; look at the daemon's log, and "
		   "try again.");
}

static void on_syncing(void *userdata)
{
	reconcile_begin(userdata);
}

static int on_found(void *userdata, const struct pp_answer *found)
{
	return reconcile_found(userdata, found);
}

static int on_tape(void *userdata, uint64_t id, const struct pp_event *event,
		   const struct pp_fired *by, const struct pp_orphans *orphans)
{
	struct lifecycle *l = userdata;
	int r = tapes_add(&l->tapes, id, event, by, l->generation);

	if (r >= 0 && orphans->bytes)
		r = charges_hold(&l->charges, orphans, l->generation);
	return r;
}

static int on_held(void *userdata, const struct pp_orphans *orphans)
{
	return reconcile_held(userdata, orphans);
}

static void on_released(void *userdata, const struct pp_orphans *orphans)
{
	struct lifecycle *l = userdata;

	charges_released(&l->charges, orphans);
	l->changed(l->userdata);
}

/* The list says so from now on, and an event that was to end with its target is deleted. */
static void on_ended(void *userdata, uint64_t id)
{
	struct lifecycle *l = userdata;
	struct event *e = registry_by_id(&l->registry, id);

	if (!e || !(e->truth.spec.flags & PP_EVENT_BOUND) || e->truth.now & PP_NOW_ENDED)
		return;
	e->truth.now |= PP_NOW_ENDED;
	lifecycle_notify(l, PP_NOTICE_CHANGED, e);
	lifecycle_delete_ended(l);
	l->changed(l->userdata);
}

static void on_synced(void *userdata)
{
	reconcile_end(userdata);
}

static void on_changed(void *userdata)
{
	struct lifecycle *l = userdata;

	l->changed(l->userdata);
}

/* ── jobs ───────────────────────────────────────────────────────────────────────────────── */

void cleanup_job(struct job **job)
{
	if (*job)
		job_free(*job);
}

int job_new(struct lifecycle *l, enum pp_order_type type, const struct pp_spec *spec,
	    const struct pp_parsed *parsed, struct job **ret)
{
	_cleanup_(cleanup_job) struct job *job = NULL;
	int r;

	if (!orders_is_patient(l->orders))
		return -EAGAIN;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->order.type = type;
	if (spec) {
		job->spec = *spec;
		job->order.spec = &job->spec;
	}
	if (parsed) {
		r = parsed_pack(parsed, &job->parsed);
		if (r < 0)
			return r;
		job->order.parsed = job->parsed;
	}
	*ret = TAKE_PTR(job);
	return 0;
}

int job_new_aside(struct lifecycle *l, enum pp_order_type type, struct event *e,
		  const struct pp_spec *spec, uint64_t memory, struct job **ret)
{
	_cleanup_(cleanup_job) struct job *job = NULL;
	int r;

	if (e->state == PP_EVENT_CREATING || e->state == PP_EVENT_DELETING)
		return -EBUSY;
	r = job_new(l, type, spec, NULL, &job);
	if (r >= 0 && memory)
		r = charges_raise(&l->charges, e, memory);
	if (r < 0)
		return r;
	job->raised = memory;
	job->order.id = e->truth.id;
	*ret = TAKE_PTR(job);
	return 0;
}

void job_submit(struct lifecycle *l, struct job *job, struct event *e, struct waiter *waiter)
{
	job->event = e;
	job->waiter = waiter;
	job->order.uid = waiter ? waiter->uid : 0;
	orders_submit(l->orders, &job->order);
}

/* Whether the event's state permits an order now. */
static int check_rest(const struct event *e)
{
	switch (e->state) {
	case PP_EVENT_RUNNING:
	case PP_EVENT_PAUSED:
		return 0;
	case PP_EVENT_DELETING:
		return -EALREADY;
	default:
		return -EBUSY;
	}
}

/* The same for an order that disarms the event. What a trigger has turned becomes a tape then, and an
 * event has one at a time; what one has stopped is paused. */
static int check_rest_of_tape(const struct lifecycle *l, const struct event *e)
{
	if (e->truth.now & (PP_NOW_TURNED | PP_NOW_CLOSING) && !(e->truth.now & PP_NOW_STOPPED) &&
	    tapes_of(&l->tapes, e->truth.id))
		return -ENOTEMPTY;
	return check_rest(e);
}

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

struct event *lifecycle_target(struct lifecycle *l, struct event *e)
{
	return e->truth.shares ? registry_by_id(&l->registry, e->truth.shares) : e;
}

bool lifecycle_has_other_names(const struct lifecycle *l, const struct event *e)
{
	for (size_t i = 0; i < l->registry.n_events; i++)
		if (l->registry.by_name[i]->truth.shares == e->truth.id)
			return true;
	return false;
}

/* ── what others ask for ────────────────────────────────────────────────────────────────── */

static int reserve(struct lifecycle *l, const struct pp_spec *spec, uint64_t memory,
		   uint32_t programs, uint32_t samples, struct event **ret)
{
	struct event *e;
	int r = registry_add(&l->registry, spec, &e);

	if (r < 0)
		return r;
	r = charges_begin(&l->charges, e, memory, programs, samples);
	if (r < 0) {
		registry_remove(&l->registry, e);
		return r;
	}
	*ret = e;
	return 0;
}

/* What is charged for the perf events that may come, until the engine tells how many these are. */
static uint64_t adopted_memory(void)
{
	int possible = pp_cpus_possible();

	return (uint64_t)MAX(possible, (int)PP_ADOPTED_MAX) * PP_PERF_EVENT_MEMORY;
}

int lifecycle_create(struct lifecycle *l, const struct pp_spec *spec,
		     const struct pp_parsed *parsed, const struct pp_trigger_spec *trigger,
		     const struct pp_msg_target *target, uint32_t program, struct waiter *waiter)
{
	return lifecycle_begin(l, PP_ORDER_CREATE, spec, parsed, trigger, target, program, NULL,
			       waiter);
}

int lifecycle_begin(struct lifecycle *l, enum pp_order_type type, const struct pp_spec *spec,
		    const struct pp_parsed *parsed, const struct pp_trigger_spec *trigger,
		    const struct pp_msg_target *target, uint32_t program, struct pp_fds *fds,
		    struct waiter *waiter)
{
	_cleanup_(cleanup_job) struct job *job = NULL;
	struct event *e;
	uint64_t memory;
	int r;

	if (l->closed)
		return -ESHUTDOWN;
	if (registry_by_name(&l->registry, spec->ns, spec->name))
		return -EEXIST;
	/* A condition is read before the event, and apart: a probe's file may be another one by then. */
	if (trigger && trigger->condition.kind == PP_CONDITION_PAIR &&
	    trigger->condition.n_on >= parsed->n_sources)
		return -ESTALE;
	r = charges_estimate(spec, NULL, &memory);
	if (r < 0)
		return r;
	if (trigger && trigger->condition.kind == PP_CONDITION_PAIR)
		memory += PP_PAIRS_SIZE;
	if (type == PP_ORDER_ADOPT)
		memory += adopted_memory();
	if (program)
		memory += PP_USER_MEMORY_MAX; /* until the engine tells how much it is */
	r = job_new(l, type, spec, parsed, &job);
	if (r < 0)
		return r;
	job->order.what = program;
	job->order.fds = fds;
	r = reserve(l, spec, memory, parsed->n_sources, spec->samples, &e);
	if (r < 0)
		return r;
	if (trigger) {
		job->trigger = e->trigger = *trigger;
		job->order.trigger = &job->trigger;
		e->aim_due = true;
	}
	if (target) {
		job->target = e->target = *target;
		job->order.target = &job->target;
	}
	if (l->creating)
		l->creating(l->userdata);
	job_submit(l, TAKE_PTR(job), e, waiter);
	return 0;
}

int lifecycle_alias(struct lifecycle *l, struct event *target, const struct pp_spec *spec,
		    struct waiter *waiter)
{
	_cleanup_(cleanup_job) struct job *job = NULL;
	struct pp_spec complete;
	struct event *e;
	int r;

	if (l->closed)
		return -ESHUTDOWN;
	if (registry_by_name(&l->registry, spec->ns, spec->name))
		return -EEXIST;
	target = lifecycle_target(l, target);
	r = target ? check_rest(target) : -EBUSY;
	if (r < 0)
		return r;
	complete = target->truth.spec;
	memcpy(complete.ns, spec->ns, sizeof(complete.ns));
	memcpy(complete.name, spec->name, sizeof(complete.name));
	complete.flags = spec->flags;
	complete.owner = spec->owner;
	complete.group = spec->group;
	complete.mode = spec->mode;
	complete.creator = spec->creator;
	r = job_new(l, PP_ORDER_ALIAS, &complete, NULL, &job);
	if (r < 0)
		return r;
	r = reserve(l, &complete, 0, 0, 0, &e);
	if (r < 0)
		return r;
	e->truth.shares = target->truth.id;
	job->order.id = target->truth.id;
	job_submit(l, TAKE_PTR(job), e, waiter);
	return 0;
}

/* What the change may bring: both, or nothing. */
static int raise_charges(struct lifecycle *l, struct event *e, struct job *job)
{
	uint32_t what = job->order.what;
	uint64_t memory = 0;
	int r = what & PP_CHANGE_BUFFER ? charges_estimate(&job->spec, &e->truth.rings, &memory)
					: 0;

	if (r >= 0)
		r = charges_raise(&l->charges, e, memory);
	if (r < 0)
		return r;
	if (what & PP_CHANGE_PERIOD)
		r = charges_raise_samples(&l->charges, e, job->spec.samples);
	if (r < 0)
		charges_lower(&l->charges, e, memory);
	else
		job->raised = memory;
	return r;
}

int lifecycle_change(struct lifecycle *l, struct event *e, uint32_t what,
		     const struct pp_spec *spec, const struct pp_parsed *parsed,
		     struct waiter *waiter)
{
	_cleanup_(cleanup_job) struct job *job = NULL;
	int r = check_rest_of_tape(l, e);

	if (r < 0)
		return r;
	if (e->truth.shares || lifecycle_has_other_names(l, e))
		return -EMLINK;
	r = job_new(l, PP_ORDER_CHANGE, &e->truth.spec, parsed, &job);
	if (r < 0)
		return r;
	event_take_changes(&job->spec, spec, what);
	job->order.what = what;
	r = raise_charges(l, e, job);
	if (r < 0)
		return r;
	job->order.id = e->truth.id;
	job->set = e->truth.set;
	job->was_paused = e->truth.paused;
	event_set_state(e, PP_EVENT_CHANGING);
	job_submit(l, TAKE_PTR(job), e, waiter);
	return 0;
}

bool lifecycle_is_paused(const struct event *e)
{
	return e->state == PP_EVENT_PAUSED;
}

int lifecycle_pause(struct lifecycle *l, struct event *e, bool pause, struct waiter *waiter)
{
	struct outcome outcome = { .event = e };
	struct job *job;
	int r = check_rest_of_tape(l, e);

	if (r < 0)
		return r;
	if (e->truth.shares)
		return -EMLINK;
	if (lifecycle_is_paused(e) == pause) {
		waiter->done(waiter, &outcome);
		return 0;
	}
	r = job_new(l, PP_ORDER_PAUSE, NULL, NULL, &job);
	if (r < 0)
		return r;
	job->order.id = e->truth.id;
	job->order.what = pause;
	event_set_state(e, PP_EVENT_CHANGING);
	job_submit(l, job, e, waiter);
	return 0;
}

int lifecycle_delete(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	return lifecycle_order_end(l, e, 0, waiter);
}

int lifecycle_order_end(struct lifecycle *l, struct event *e, uint32_t what, struct waiter *waiter)
{
	struct job *job;
	int r = check_rest(e);

	if (r < 0)
		return r;
	r = job_new(l, PP_ORDER_DELETE, NULL, NULL, &job);
	if (r < 0)
		return r;
	job->order.id = e->truth.id;
	job->order.what = what;
	event_set_state(e, PP_EVENT_DELETING);
	job_submit(l, job, e, waiter);
	return 0;
}

void lifecycle_delete_ended(struct lifecycle *l)
{
	for (size_t i = 0; i < l->registry.n_settled; i++) {
		struct event *e = l->registry.by_id[i];
		const struct pp_spec *spec = &e->truth.spec;

		if (!(spec->flags & PP_EVENT_BOUND) || !(e->truth.now & PP_NOW_ENDED) ||
		    !(e->target.flags & PP_TARGET_DELETE) || e->was_ended == l->generation)
			continue;
		if (lifecycle_order_end(l, e, 0, NULL) < 0)
			continue; /* another order is under way, or the engine is away */
		e->was_ended = l->generation;
		log_event(LOG_INFO, spec->ns, spec->name,
			  "The target of %s/%s (id %" PRIu64 ") has ended, and so does the event.",
			  spec->ns, spec->name, e->truth.id);
	}
}

int lifecycle_cpus(struct lifecycle *l, struct event *e, const struct pp_cpumask *cpus,
		   struct waiter *waiter)
{
	struct pp_spec spec = { .cpus = *cpus };
	struct pp_cpumask without;
	struct job *job;
	uint64_t memory;
	int r;

	event_lacks(e, cpus, &without);
	r = charges_estimate(&e->truth.spec, &without, &memory);
	if (r >= 0)
		r = job_new_aside(l, PP_ORDER_CPUS, e, &spec, memory, &job);
	if (r < 0)
		return r;
	job_submit(l, job, e, waiter);
	return 0;
}

/* ── others ─────────────────────────────────────────────────────────────────────────────── */

int lifecycle_sideband(struct lifecycle *l, const struct pp_cpumask *cpus, uint32_t what,
		       struct pp_fds *fds, struct waiter *waiter)
{
	struct pp_spec spec = { .cpus = *cpus };
	struct job *job;
	int r = job_new(l, PP_ORDER_SIDEBAND, &spec, NULL, &job);

	if (r < 0)
		return r;
	job->order.what = what;
	job->order.fds = fds;
	job_submit(l, job, NULL, waiter);
	return 0;
}

int lifecycle_aux(struct lifecycle *l, struct event *e, const struct pp_cpumask *cpus,
		  struct pp_fds *fds, struct waiter *waiter)
{
	struct pp_spec spec = { .cpus = *cpus };
	struct job *job;
	int r = job_new_aside(l, PP_ORDER_AUX, e, &spec, 0, &job);

	if (r < 0)
		return r;
	job->order.what = e->truth.n_sources;
	job->order.fds = fds;
	job_submit(l, job, e, waiter);
	return 0;
}

int lifecycle_rights(struct lifecycle *l, const struct namespace *ns)
{
	struct pp_spec spec = {
		.owner = ns->owner,
		.group = ns->group,
		.mode = ns->mode,
	};
	struct job *job;
	int r;

	memcpy(spec.ns, ns->name, sizeof(spec.ns));
	r = job_new(l, PP_ORDER_RIGHTS, &spec, NULL, &job);
	if (r < 0)
		return r;
	job_submit(l, job, NULL, NULL);
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int lifecycle_init(struct lifecycle *l, sd_event *loop, const char *engine_path)
{
	static const struct orders_hooks hooks = {
		.syncing = on_syncing,
		.found = on_found,
		.held = on_held,
		.tape = on_tape,
		.released = on_released,
		.ended = on_ended,
		.synced = on_synced,
		.sending = on_sending,
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
	while (l->registry.n_events > 0)
		lifecycle_forget(l, l->registry.by_name[l->registry.n_events - 1]);
	registry_done(&l->registry);
	charges_done(&l->charges);
	tapes_done(&l->tapes);
}
