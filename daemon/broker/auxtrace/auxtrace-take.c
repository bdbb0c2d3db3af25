// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the queues of those who wait for copies, and for events that begin to trace. Must not know
 * how areas are made. */
#include <time.h>

#include "daemon/broker/auxtrace/auxtrace-internal.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* ── copies ─────────────────────────────────────────────────────────────────────────────── */

/* After a copy an area is left alone for so many times as long as that took. */
#define REST 7
/* ns: no copy takes longer, but it can wait while the keeper reads tasks. */
#define COPY_MAX 1000000000ULL

static struct held_area *find_area(const struct auxtrace *a, const struct aux_taking *taking)
{
	return aux_held_find(a, taking->origin, taking->cpu);
}

static bool is_due(const struct auxtrace *a, const struct aux_taking *taking, uint64_t now,
		   uint64_t *first)
{
	const struct held_area *area = find_area(a, taking);

	if (!area || area->rests_until <= now)
		return true;
	*first = MIN(*first, area->rests_until);
	return false;
}

static struct aux_taking *remove_at(struct auxtrace *a, struct aux_taking **p)
{
	struct aux_taking *taking = *p;

	*p = taking->next;
	if (!*p)
		a->last_taking = p;
	taking->next = NULL;
	return taking;
}

/* Users take turns: the next request is the first of another user that is due, if there is one.
 * NULL: none is; *first is when one will be. */
static struct aux_taking *take_next(struct auxtrace *a, uint64_t now, uint64_t *first)
{
	struct aux_taking **own = NULL;

	for (struct aux_taking **p = &a->first_taking; *p; p = &(*p)->next) {
		if (!is_due(a, *p, now, first))
			continue;
		if ((*p)->uid != a->last_uid) {
			a->last_uid = (*p)->uid;
			return remove_at(a, p);
		}
		own = own ?: p;
	}
	return own ? remove_at(a, own) : NULL;
}

/* The next one for which there is an area, and room for the copy. NULL: there is none, or not yet. */
static struct aux_taking *take_prepared(struct auxtrace *a, uint64_t now)
{
	uint64_t first = UINT64_MAX;
	struct aux_taking *taking;

	while ((taking = take_next(a, now, &first))) {
		const struct event *e = auxtrace_owner(a, taking->origin);
		int r = e && find_area(a, taking)
				? taking->prepare(taking, pp_spec_aux_copy(&e->truth.spec))
				: -ENODATA;

		if (r >= 0)
			return taking;
		taking->done(taking, r, -EBADF, 0);
		first = UINT64_MAX;
	}
	if (first != UINT64_MAX)
		timer_start(a->rest, (first - now) / 1000 + 1);
	return NULL;
}

bool aux_takings_ask(struct auxtrace *a)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct aux_taking *taking = take_prepared(a, now);
	struct pp_keep_request *request;

	if (!taking)
		return false;
	request = keeper_request(&a->keeper, PP_KEEP_AREAS_TAKE);
	request->event = taking->origin;
	request->first = taking->cpu;
	a->asked = now;
	a->current = taking;
	auxtrace_ask(a, NULL);
	return true;
}

void aux_takings_answered(struct auxtrace *a, const struct pp_keep_answer *answer,
			  struct pp_fds *fds)
{
	struct aux_taking *taking = TAKE_PTR(a->current);
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct held_area *area = taking ? find_area(a, taking) : NULL;
	size_t due = answer->error ? 0 : 1;

	if (!taking)
		return;
	if (area)
		area->rests_until = now + REST * MIN(now - a->asked, COPY_MAX);
	if (fds->n != due || (due && !answer->size)) {
		log_error("The keeper sent a trace without a file, or a file without a trace.");
		taking->done(taking, -EAGAIN, -EBADF, 0);
	} else {
		taking->done(taking, -answer->error, due ? fds->fd[0] : -EBADF, answer->size);
	}
}

void aux_takings_break(struct auxtrace *a, int error)
{
	struct aux_taking *taking = TAKE_PTR(a->current);

	if (taking)
		taking->done(taking, error, -EBADF, 0);
}

void aux_takings_end(struct auxtrace *a, int error)
{
	while (a->first_taking) {
		struct aux_taking *taking = remove_at(a, &a->first_taking);

		taking->done(taking, error, -EBADF, 0);
	}
}

void auxtrace_take(struct auxtrace *a, struct aux_taking *taking)
{
	taking->next = NULL;
	*a->last_taking = taking;
	a->last_taking = &taking->next;
	auxtrace_continue(a);
}

/* ── events that begin to trace ─────────────────────────────────────────────────────────── */

static void end_wait(struct aux_wait **p, int error, const char *sentence)
{
	struct aux_wait *wait = *p;

	*p = wait->next;
	wait->done(wait, error, sentence);
}

void aux_waits_end(struct auxtrace *a, uint64_t id, int error, const char *sentence)
{
	struct aux_wait **p = &a->waits;

	while (*p)
		if (!id || (*p)->id == id)
			end_wait(p, error, sentence);
		else
			p = &(*p)->next;
}

bool aux_waits_for(const struct auxtrace *a, uint64_t id)
{
	for (const struct aux_wait *wait = a->waits; wait; wait = wait->next)
		if (wait->id == id)
			return true;
	return false;
}

void aux_waits_check(struct auxtrace *a)
{
	struct aux_wait **p = &a->waits;

	while (*p) {
		const struct event *e = registry_by_id(&a->lifecycle->registry, (*p)->id);

		if (!e)
			end_wait(p, ENOENT, "The event has been deleted meanwhile.");
		else if (a->known && auxtrace_is_complete(a, e))
			end_wait(p, 0, NULL);
		else
			p = &(*p)->next;
	}
}

void auxtrace_wait(struct auxtrace *a, struct aux_wait *wait)
{
	wait->next = a->waits;
	a->waits = wait;
	auxtrace_continue(a);
}
