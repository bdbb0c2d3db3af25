// SPDX-License-Identifier: LGPL-2.1-or-later
/* See ready.h. Must not know orders, nor how triggers fire. */
#include "daemon/broker/triggers/ready.h"

#include "proto/macro.h"

void ready_find_tapes(const struct triggers *t)
{
	const struct registry *r = &t->lifecycle->registry;
	const struct tapes *tapes = &t->lifecycle->tapes;

	for (size_t i = 0; i < r->n_settled; i++)
		r->by_id[i]->tape = NULL;
	for (size_t i = tapes->n; i-- > 0;) {
		struct event *e = registry_by_id(r, tapes->all[i]->of);

		if (e)
			e->tape = tapes->all[i];
	}
}

/* Whether it will be saved soon, without anybody asking. An event that is its own tape has no second one to come. */
static bool is_saved_soon(const struct tape *tape)
{
	return tape->event.is_tape && !tape->event.is_kept;
}

static bool any_is_new(const struct tapes *tapes)
{
	for (size_t i = 0; i < tapes->n; i++)
		if (!tapes->all[i]->ready)
			return true;
	return false;
}

/* The events of each namespace whose turn is due, or waits until a tape of an earlier firing is saved. No tape waits for
 * later ones, so the oldest waits for none; and none for what nobody may ever save. */
static void find_turning(struct triggers *t)
{
	const struct registry *r = &t->lifecycle->registry;

	ready_find_tapes(t);
	for (size_t i = 0; i < r->n_namespaces; i++) {
		r->namespaces[i]->is_turning = false;
		r->namespaces[i]->waits_for = UINT64_MAX;
	}
	for (size_t i = 0; i < r->n_settled; i++) {
		const struct event *e = r->by_id[i];

		if (!(e->truth.now & (PP_NOW_TURNED | PP_NOW_CLOSING)) ||
		    e->truth.now & PP_NOW_STOPPED)
			continue;
		if (!e->tape)
			e->ns->is_turning |= !e->arm_tried;
		else if (is_saved_soon(e->tape))
			e->ns->waits_for = MIN(e->ns->waits_for, e->tape->by.time);
	}
}

/* Whether another event of the namespace may have been turned by the same firing, and has no tape of it yet. */
static bool is_early(const struct triggers *t, const struct tape *tape)
{
	const struct namespace *ns = registry_namespace(&t->lifecycle->registry, tape->ns.name);

	return ns && (ns->is_turning || ns->waits_for < tape->by.time);
}

/* Turns come first: if none waits (or is under way), all tapes of what has fired are there. */
void ready_tell(struct triggers *t)
{
	struct tapes *tapes = &t->lifecycle->tapes;

	if (!any_is_new(tapes))
		return;
	find_turning(t);
	for (size_t i = 0; i < tapes->n; i++) {
		if (tapes->all[i]->ready || is_early(t, tapes->all[i]))
			continue;
		tapes->all[i]->ready = true;
		lifecycle_tape_ns(t->lifecycle, tapes->all[i]);
		if (t->ready)
			t->ready(t->userdata, tapes->all[i]);
	}
}
