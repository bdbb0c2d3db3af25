// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the marks of events whose rings are missing. Must not know where hotplug news comes from. */
#include "daemon/broker/hotplug/missing-rings.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/macro.h"

/* ── whom it concerns ───────────────────────────────────────────────────────────────────── */

static bool wants_any(const struct event *e, const struct pp_cpumask *cpus)
{
	if (e->truth.spec.flags & PP_EVENT_ALL_CPUS)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(cpus->bits); i++)
		if (e->truth.spec.cpus.bits[i] & cpus->bits[i])
			return true;
	return false;
}

/* Also marks events that are being created: the engine may have looked before the CPU came. Second
 * names have no rings of their own. */
void missing_rings_add(struct missing_rings *a)
{
	struct registry *r = &a->lifecycle->registry;

	for (size_t i = 0; i < r->n_events; i++) {
		struct event *e = r->by_name[i];

		if (!e->truth.shares && wants_any(e, a->online))
			e->missing = MISSING_DUE;
	}
	missing_rings_continue(a);
}

static void make_due(struct missing_rings *a)
{
	struct registry *r = &a->lifecycle->registry;

	for (size_t i = 0; i < r->n_settled; i++)
		if (r->by_id[i]->missing == MISSING_REFUSED)
			r->by_id[i]->missing = MISSING_DUE;
}

void missing_rings_retry(struct missing_rings *a)
{
	make_due(a);
	missing_rings_continue(a);
}

/* After an enumeration: marks the events that the engine reports as incomplete. */
static void hear_engine(struct missing_rings *a)
{
	struct lifecycle *l = a->lifecycle;

	if (!l->synced || a->generation == l->generation || !orders_is_up(l->orders))
		return;
	a->generation = l->generation;
	for (size_t i = 0; i < l->registry.n_settled; i++) {
		struct event *e = l->registry.by_id[i];

		if (!e->truth.shares && e->truth.now & PP_NOW_INCOMPLETE)
			e->missing = MISSING_DUE;
	}
	make_due(a);
}

bool missing_rings_of(const struct lifecycle *l, const struct event *e,
		      const struct pp_cpumask *online, struct pp_cpumask *ret, int *ret_error)
{
	const struct event *target =
		e->truth.shares ? registry_by_id(&l->registry, e->truth.shares) : e;

	/* Missing rings of an event without a mark are not wanted: a PMU that counts on some CPUs
	 * has no rings on others. */
	if (!target ||
	    (target->missing == MISSING_NONE && !(target->truth.now & PP_NOW_INCOMPLETE)))
		return false;
	*ret_error = target->missing_error;
	return event_lacks(target, online, ret);
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

static uint64_t memory_used(const struct missing_rings *a)
{
	return a->lifecycle->charges.quota->sum.used[QUOTA_MEMORY];
}

/* error: positive errno value. Without an engine nothing is wrong with the event; when the engine
 * returns, all events are checked. */
static void refused(struct missing_rings *a, struct event *e, int error, const char *sentence)
{
	const struct pp_spec *spec = &e->truth.spec;

	e->missing = MISSING_REFUSED;
	if (error == EDQUOT)
		a->memory = memory_used(a);
	if (error != EAGAIN && error != e->missing_error)
		log_event(LOG_WARNING, spec->ns, spec->name,
			  "%s/%s (id %" PRIu64
			  ") does not record on all CPUs that are online; this "
			  "is tried again: %s",
			  spec->ns, spec->name, e->truth.id, sentence);
	e->missing_error = error;
}

static void on_done(struct waiter *waiter, const struct outcome *outcome)
{
	struct missing_rings *a = (struct missing_rings *)waiter;
	struct event *e = TAKE_PTR(a->about);

	if (outcome->error == ENOENT) /* the event is gone, or about to go */
		return;
	if (outcome->error) {
		refused(a, e, outcome->error, outcome->sentence);
		return;
	}
	e->missing_error = 0;
	/* More CPUs may have come since the order was given. */
	if (e->missing == MISSING_NONE && e->truth.now & PP_NOW_INCOMPLETE)
		e->missing = MISSING_REFUSED;
}

/* After a refusal, which stands, and is all that is told: both are tried again. */
static void on_renewed(struct waiter *waiter, const struct outcome *outcome _unused_)
{
	struct missing_rings *a = (struct missing_rings *)waiter;

	a->about = NULL;
}

/* There is no room for the rings of new CPUs: counters of those that had been offline need none. */
static void order_without_rings(struct missing_rings *a, struct event *e)
{
	struct pp_cpumask cpus;

	for (size_t i = 0; i < ARRAY_SIZE(cpus.bits); i++)
		cpus.bits[i] = a->online->bits[i] & e->truth.rings.bits[i];
	a->about = e;
	a->waiter = (struct waiter){ .done = on_renewed };
	if (pp_cpumask_count(&cpus) == 0 || lifecycle_cpus(a->lifecycle, e, &cpus, &a->waiter) < 0)
		a->about = NULL;
}

static void order(struct missing_rings *a, struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;
	char sentence[PP_SENTENCE_SIZE];
	int r;

	e->missing = MISSING_NONE;
	a->about = e;
	a->after = e->truth.id;
	a->waiter = (struct waiter){ .done = on_done };
	r = lifecycle_cpus(a->lifecycle, e, a->online, &a->waiter);
	if (r >= 0)
		return;
	a->about = NULL;
	lifecycle_explain(a->lifecycle, r, spec->ns, spec->name, sentence, sizeof(sentence));
	refused(a, e, -r, sentence);
	if (r == -EDQUOT)
		order_without_rings(a, e);
}

static bool is_ready(const struct event *e)
{
	return e->missing == MISSING_DUE && e->state != PP_EVENT_DELETING;
}

/*
 * The next event by id, then from the lowest again. Counters come first: they record nothing on the
 * CPU until they are attached anew, while other events have gone on if they have a ring.
 */
static struct event *find_next(const struct missing_rings *a)
{
	const struct registry *r = &a->lifecycle->registry;
	size_t first = registry_after(r, a->after);
	struct event *other = NULL;

	for (size_t i = 0; i < r->n_settled; i++) {
		struct event *e = r->by_id[(first + i) % r->n_settled];

		if (!is_ready(e))
			continue;
		if (e->truth.recorder == PP_RECORDER_OVERFLOW)
			return e;
		if (!other)
			other = e;
	}
	return other;
}

void missing_rings_continue(struct missing_rings *a)
{
	struct event *e;

	if (a->stepping || !a->lifecycle->synced)
		return;
	a->stepping = true;
	hear_engine(a);
	if (a->memory > memory_used(a)) {
		a->memory = 0;
		make_due(a);
	}
	while (!a->about && orders_is_patient(a->lifecycle->orders) && (e = find_next(a)))
		order(a, e);
	a->stepping = false;
}
