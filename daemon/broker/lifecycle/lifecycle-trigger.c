// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns what triggers ask for into orders. See lifecycle.h. */
#include "daemon/broker/lifecycle/lifecycle.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/lifecycle/lifecycle-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

static int order_aside(struct lifecycle *l, enum pp_order_type type, struct event *e,
		       uint64_t memory, uint32_t what, struct waiter *waiter)
{
	struct job *job;
	int r = job_new_aside(l, type, e, NULL, memory, &job);

	if (r < 0)
		return r;
	job->order.what = what;
	job_submit(l, job, e, waiter);
	return 0;
}

void lifecycle_log_no_swap(const struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;

	log_event(LOG_NOTICE, spec->ns, spec->name,
		  "%s/%s (id %" PRIu64
		  ") has no second set of buffers, for which the limits have no "
		  "room: a trigger that freezes it stops it until what it had recorded is saved.",
		  spec->ns, spec->name, e->truth.id);
}

bool lifecycle_may_swap(struct lifecycle *l, struct event *e)
{
	uint64_t memory;

	if (e->no_swap)
		return false;
	if (charges_estimate(&e->truth.spec, &e->truth.rings, &memory) >= 0 &&
	    charges_have_room(&l->charges, e, memory))
		return true;
	/* A tape gives its memory back soon. */
	if (tapes_of(&l->tapes, e->truth.id))
		return false;
	e->no_swap = true;
	lifecycle_log_no_swap(e);
	return false;
}

int lifecycle_arm(struct lifecycle *l, struct event *e, uint32_t needs, struct waiter *waiter)
{
	uint64_t memory;
	int r = charges_estimate(&e->truth.spec, &e->truth.rings, &memory);

	if (!(e->truth.now & PP_NOW_ARMED))
		e->no_swap = false;
	if (!(needs & PP_ARM_SWAP))
		return order_aside(l, PP_ORDER_ARM, e, 0, needs, waiter);
	/* It has its second set, or does not get one. */
	if (r >= 0 && e->truth.now & PP_NOW_ARMED)
		return order_aside(l, PP_ORDER_ARM, e, 0, needs, waiter);
	if (r >= 0)
		r = order_aside(l, PP_ORDER_ARM, e, memory, needs, waiter);
	/* A tape gives its memory back soon. */
	if (r == -EDQUOT && !tapes_of(&l->tapes, e->truth.id)) {
		r = order_aside(l, PP_ORDER_ARM, e, 0, needs & ~PP_ARM_SWAP, waiter);
		e->no_swap = r >= 0;
	}
	return r;
}

int lifecycle_disarm(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	return order_aside(l, PP_ORDER_DISARM, e, 0, 0, waiter);
}

int lifecycle_turn(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	uint64_t memory;
	int r = charges_estimate(&e->truth.spec, &e->truth.rings, &memory);

	/* There is no second tape of it, whatever is the case by now. */
	if (r >= 0 && tapes_of(&l->tapes, e->truth.id))
		return order_aside(l, PP_ORDER_TURN, e, 0, PP_TURN_STOPPED, waiter);
	if (r >= 0)
		r = order_aside(l, PP_ORDER_TURN, e, memory, PP_TURN_AGAIN, waiter);
	return r == -EDQUOT ? order_aside(l, PP_ORDER_TURN, e, 0, 0, waiter) : r;
}

int lifecycle_fire(struct lifecycle *l, struct event *e, bool overdue, struct waiter *waiter)
{
	return order_aside(l, PP_ORDER_FIRE, e, 0, overdue, waiter);
}

int lifecycle_aim(struct lifecycle *l, struct event *e, const uint64_t *targets, size_t n,
		  struct waiter *waiter)
{
	struct job *job;
	int r = job_new_aside(l, PP_ORDER_AIM, e, NULL, 0, &job);

	if (r < 0)
		return r;
	assert(n <= PP_TARGETS_MAX);
	memcpy(job->targets, targets, n * sizeof(*targets));
	job->order.what = (uint32_t)n;
	job->order.targets = job->targets;
	job->order.n_targets = n;
	job_submit(l, job, e, waiter);
	return 0;
}

const struct namespace *lifecycle_tape_ns(const struct lifecycle *l, struct tape *tape)
{
	struct namespace *ns = registry_namespace(&l->registry, tape->ns.name);

	tape->event.ns = ns && (ns->configured || ns->owner == tape->ns.owner) ? ns : &tape->ns;
	return tape->event.ns;
}

int lifecycle_release(struct lifecycle *l, uint64_t id, struct waiter *waiter)
{
	const struct event *e = registry_by_id(&l->registry, id);
	struct job *job;
	int r;

	if (!tapes_find(&l->tapes, id) && !(e && event_is_frozen(e)))
		return -ENOENT;
	r = job_new(l, PP_ORDER_RELEASE, NULL, NULL, &job);
	if (r < 0)
		return r;
	job->order.id = id;
	job_submit(l, job, NULL, waiter);
	return 0;
}
