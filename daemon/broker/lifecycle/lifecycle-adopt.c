// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adoptions, and events that are given back, as orders. See lifecycle.h. */
#include "daemon/broker/lifecycle/lifecycle.h"

#include <string.h>

#include "daemon/broker/lifecycle/lifecycle-internal.h"
#include "proto/macro.h"

int lifecycle_adopt(struct lifecycle *l, const struct pp_spec *spec, const struct pp_parsed *parsed,
		    struct pp_fds *fds, struct waiter *waiter)
{
	return lifecycle_begin(l, PP_ORDER_ADOPT, spec, parsed, NULL, NULL, 0, fds, waiter);
}

static bool has_order(const struct lifecycle *l, const struct event *e)
{
	for (struct order *o = orders_first(l->orders); o; o = o->next)
		if (job_of(o)->event == e)
			return true;
	return false;
}

struct event *lifecycle_adoption(const struct lifecycle *l, const char *ns, const char *name,
				 uint64_t id)
{
	struct event *e = registry_by_name(&l->registry, ns, name);

	return e && e->state == PP_EVENT_CREATING && e->adoption == id ? e : NULL;
}

bool lifecycle_is_waiting(const struct lifecycle *l, const struct event *e)
{
	return e->state == PP_EVENT_CREATING && e->adoption && !has_order(l, e);
}

_Static_assert(PP_LINKS_MAX <= PP_TARGETS_MAX, "a page of links fits the order");

int lifecycle_attach(struct lifecycle *l, struct event *e, const uint64_t *links, size_t n,
		     bool more, struct waiter *waiter)
{
	struct job *job;
	int r;

	if (l->closed)
		return -ESHUTDOWN;
	if (has_order(l, e))
		return -EBUSY;
	r = job_new(l, PP_ORDER_ATTACH, &e->truth.spec, NULL, &job);
	if (r < 0)
		return r;
	memcpy(job->targets, links, n * sizeof(*links));
	job->order.targets = job->targets;
	job->order.n_targets = n;
	job->order.id = e->adoption;
	job->order.what = n | (more ? PP_ATTACH_MORE : 0);
	job_submit(l, job, e, waiter);
	return 0;
}

int lifecycle_abandon(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	struct outcome gone = { .event = e };
	struct job *job;
	int r;

	if (has_order(l, e))
		return -EBUSY;
	r = job_new(l, PP_ORDER_DELETE, NULL, NULL, &job);
	if (r == -EAGAIN) { /* the connection is gone, and with it what the engine has of it */
		if (waiter)
			waiter->done(waiter, &gone);
		lifecycle_forget(l, e);
		l->changed(l->userdata);
		return 0;
	}
	if (r < 0)
		return r;
	job->order.id = e->adoption;
	e->adoption = 0;
	job->event = e;
	job->waiter = waiter;
	job->order.uid = e->creator;
	orders_submit(l->orders, &job->order);
	return 0;
}

size_t lifecycle_adoptions(const struct lifecycle *l, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < l->registry.n_events; i++) {
		const struct event *e = l->registry.by_name[i];

		n += e->state == PP_EVENT_CREATING && e->creator == uid &&
		     e->truth.spec.flags & PP_EVENT_ADOPTED;
	}
	return n;
}

/* Orders that only ask, and bring descriptors. */
static int ask(struct lifecycle *l, enum pp_order_type type, struct event *e, uint32_t what,
	       struct pp_fds *fds, struct waiter *waiter)
{
	struct job *job;
	int r;

	if (e->state == PP_EVENT_CREATING || e->state == PP_EVENT_DELETING)
		return -EBUSY;
	r = job_new(l, type, NULL, NULL, &job);
	if (r < 0)
		return r;
	job->order.id = e->truth.id;
	job->order.what = what;
	job->order.fds = fds;
	job_submit(l, job, e, waiter);
	return 0;
}

/* Whether an order waits, or is under way, after which the event may have other links. */
static bool is_to_be_changed(struct lifecycle *l, const struct event *e)
{
	struct order *order;

	orders_rewind(l->orders);
	while ((order = orders_next(l->orders)))
		if (job_of(order)->event == e && !order_asks(order))
			return true;
	return false;
}

int lifecycle_hand_out(struct lifecycle *l, struct event *e, uint32_t first, struct pp_fds *fds,
		       struct waiter *waiter)
{
	if (first == 0 && is_to_be_changed(l, e))
		return -EBUSY;
	return ask(l, PP_ORDER_HANDOUT, e, first, fds, waiter);
}

int lifecycle_describe(struct lifecycle *l, struct event *e, struct pp_fds *fds,
		       struct waiter *waiter)
{
	return ask(l, PP_ORDER_DESCRIBE, e, 0, fds, waiter);
}

int lifecycle_give_back(struct lifecycle *l, struct event *e, struct waiter *waiter)
{
	if (e->truth.shares || lifecycle_has_other_names(l, e))
		return -EMLINK;
	if (e->state == PP_EVENT_RUNNING && is_to_be_changed(l, e))
		return -EBUSY;
	return lifecycle_order_end(l, e, PP_DELETE_CLAIMED, waiter);
}
