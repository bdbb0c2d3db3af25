// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the walk over snapshots of several events in order of time, and how far back each event
 * reaches. A merge orders each event's own records; a heap finds the oldest of these.
 */
#include "client/public.h"
#include "client/rings/event.h"
#include "client/rings/heap.h"
#include "client/rings/snapshot.h"
#include "proto/clock.h"

struct ring_history {
	uint32_t cpu;
	const struct snapshot_ring *ring;
	uint64_t held;	  /* records that are in it */
	uint64_t oldest;  /* time of the first of these */
	uint64_t created; /* of the event, if the ring has recorded since then; else 0 */
};

struct interleaved {
	struct perfpersist_event *event; /* a reference */
	struct perfpersist_info info;	 /* just before its snapshot */
	struct perfpersist_snapshot *snapshot;
	struct perfpersist_merge *merge;
	struct perfpersist_sample next; /* its next record */
	uint64_t taken;			/* when, by the clock of its records */
	uint64_t newest;		/* time of its last record so far */
	bool stands_still;		/* it was not recording when it was taken */
	struct ring_history *rings;
	size_t n_rings;
};

struct perfpersist_interleave {
	struct interleaved *all;
	size_t n;
	uint32_t *heap; /* of events that have a next record; the oldest on top */
	size_t n_heap;
};

/* Records of the same time come in the order of events. */
static bool is_before(const void *interleave, uint32_t a, uint32_t b)
{
	const struct perfpersist_interleave *i = interleave;
	uint64_t x = i->all[a].next.time, y = i->all[b].next.time;

	return x != y ? x < y : a < b;
}

static void note(struct interleaved *one, const struct perfpersist_sample *s)
{
	for (size_t r = 0; r < one->n_rings; r++) {
		struct ring_history *ring = &one->rings[r];

		if (ring->cpu != s->cpu)
			continue;
		if (!ring->held++)
			ring->oldest = s->time;
		return;
	}
}

/* As perfpersist_merge_next(). */
static int fetch(struct interleaved *one)
{
	int r = perfpersist_merge_next(one->merge, &one->next);

	if (r > 0) {
		note(one, &one->next);
		one->newest = MAX(one->newest, one->next.time);
	}
	return r;
}

/* The first set of rings has recorded since the event was created. When a later set began to record is
 * not known. */
static struct ring_history look_ring(const struct interleaved *one, size_t ring)
{
	const struct pp_ring_header *h = &one->event->rings[ring].header;

	return (struct ring_history){
		.cpu = (uint32_t)perfpersist_ring_cpu(one->event, ring),
		.ring = &one->snapshot->rings[ring],
		.created = h->set == 1 ? h->created_mono : 0,
	};
}

/* A copy in a file may have been made at any time. */
static bool is_of_unknown_time(const struct interleaved *one)
{
	return one->event->is_copy && !one->event->copied && !one->info.saved;
}

static bool stands_still(const struct interleaved *one)
{
	for (size_t i = 0; i < one->n_rings; i++)
		if (client_ring_state(&one->event->rings[i]) != PP_RING_RUNNING)
			return true;
	return one->info.state == PERFPERSIST_PAUSED || one->info.state == PERFPERSIST_FROZEN ||
	       is_of_unknown_time(one);
}

static int look(struct interleaved *one)
{
	int r;

	one->info.sz = sizeof(one->info);
	one->n_rings = perfpersist_event_rings(one->event);
	r = perfpersist_event_info(one->event, &one->info);
	one->stands_still = stands_still(one);
	return r;
}

/* Before the rings are copied, wherever that is: what they have recorded until then is there. */
static uint64_t time_of(const struct interleaved *one)
{
	if (one->info.saved)
		return one->info.saved_mono;
	return one->event->copied ?: pp_clock_ns(CLOCK_MONOTONIC);
}

static int take(struct interleaved *one)
{
	one->taken = time_of(one);
	return perfpersist_snapshot_take(one->snapshot);
}

static int look_rings(struct interleaved *one)
{
	one->rings = calloc(one->n_rings + 1, sizeof(*one->rings));
	if (!one->rings)
		return client_fail(-ENOMEM, "cannot take a snapshot: out of memory");
	for (size_t i = 0; i < one->n_rings; i++)
		one->rings[i] = look_ring(one, i);
	return 0;
}

/* Takes all snapshots before it does anything else, so that they are of nearly the same time. */
static int take_all(struct perfpersist_interleave *i)
{
	int r = 0;

	for (size_t k = 0; r >= 0 && k < i->n; k++) {
		r = look(&i->all[k]);
		if (r >= 0)
			r = perfpersist_snapshot_new(i->all[k].event, &i->all[k].snapshot);
	}
	for (size_t k = 0; r >= 0 && k < i->n; k++)
		r = take(&i->all[k]);
	for (size_t k = 0; r >= 0 && k < i->n; k++)
		r = look_rings(&i->all[k]);
	return r;
}

static int sort_all(struct perfpersist_interleave *i)
{
	for (uint32_t k = 0; k < i->n; k++) {
		struct interleaved *one = &i->all[k];
		int r = perfpersist_merge_new(one->snapshot, PERFPERSIST_OLDEST_FIRST, 0,
					      &one->merge);

		if (r >= 0)
			r = fetch(one);
		if (r < 0)
			return r;
		if (r > 0)
			i->heap[i->n_heap++] = k;
	}
	heap_make(i->heap, i->n_heap, is_before, i);
	return 0;
}

static void interleave_cleanup(struct perfpersist_interleave **i)
{
	perfpersist_interleave_free(*i);
}

_public_ int perfpersist_interleave_new(struct perfpersist_event *const *events, size_t n,
					struct perfpersist_interleave **ret)
{
	_cleanup_(interleave_cleanup) struct perfpersist_interleave *i = calloc(1, sizeof(*i));
	int r;

	if (!i || !(i->all = calloc(n + 1, sizeof(*i->all))) ||
	    !(i->heap = calloc(n + 1, sizeof(*i->heap))))
		return client_fail(-ENOMEM, "cannot take a snapshot: out of memory");
	for (; i->n < n; i->n++)
		i->all[i->n].event = client_event_ref(events[i->n]);
	r = take_all(i);
	if (r >= 0)
		r = sort_all(i);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(i);
	return 0;
}

_public_ void perfpersist_interleave_free(struct perfpersist_interleave *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->n; k++) {
		perfpersist_merge_free(i->all[k].merge);
		perfpersist_snapshot_free(i->all[k].snapshot);
		perfpersist_event_free(i->all[k].event);
		free(i->all[k].rings);
	}
	free(i->all);
	free(i->heap);
	free(i);
}

_public_ int perfpersist_interleave_next(struct perfpersist_interleave *i,
					 struct perfpersist_sample *ret, size_t *ret_event)
{
	struct interleaved *one;
	int r;

	if (!i->n_heap)
		return 0;
	one = &i->all[i->heap[0]];
	*ret = one->next;
	*ret_event = i->heap[0];
	r = fetch(one);
	if (r < 0)
		return r;
	if (r == 0)
		i->heap[0] = i->heap[--i->n_heap];
	heap_sift(i->heap, i->n_heap, 0, is_before, i);
	return 1;
}

_public_ int perfpersist_interleave_info(struct perfpersist_interleave *i, size_t event,
					 struct perfpersist_info *ret)
{
	size_t sz = ret->sz;

	if (!SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_info of %zu bytes: set its "
				   "sz to its size",
				   sz);
	if (event >= i->n)
		return client_fail(-EINVAL, "there is no event %zu: there are %zu", event, i->n);
	*ret = i->all[event].info;
	ret->sz = sz;
	return 0;
}

/* Whether nothing was overwritten before the snapshot, nor is damaged. */
static bool is_whole(const struct ring_history *h)
{
	return h->ring->has_begin && !h->ring->damaged && !h->ring->is_cut;
}

_public_ uint64_t perfpersist_interleave_begin(struct perfpersist_interleave *i, size_t event)
{
	uint64_t begin = 0;

	for (size_t r = 0; event < i->n && r < i->all[event].n_rings; r++) {
		const struct ring_history *ring = &i->all[event].rings[r];

		if (!is_whole(ring))
			begin = MAX(begin, ring->held ? ring->oldest : i->all[event].taken);
	}
	return begin;
}

/* What stands still has recorded until its last record, at least. */
static uint64_t end_of(const struct interleaved *one)
{
	return one->stands_still ? MIN(one->newest, one->taken) : one->taken;
}

_public_ int perfpersist_interleave_history(struct perfpersist_interleave *i, size_t event,
					    size_t ring, struct perfpersist_history *ret)
{
	const struct interleaved *one = event < i->n ? &i->all[event] : NULL;
	const struct ring_history *h;
	size_t sz = ret->sz;
	uint64_t to;

	if (!SZ_IS_VALID(ret) || !one || ring >= one->n_rings)
		return client_fail(-EINVAL, "there is no ring %zu of event %zu", ring, event);
	h = &one->rings[ring];
	to = end_of(one);
	*ret = (struct perfpersist_history){
		.sz = sz,
		.cpu = h->cpu,
		.from = MIN(h->created, to),
		.to = to,
		.missed = one->info.missed,
		.limited = one->info.limited,
		.missed_at_least = one->info.missed_unknown || one->info.missed_at_least,
	};
	if (!is_whole(h) || !h->created)
		ret->from = h->held ? MIN(h->oldest, to) : to;
	return 0;
}

_public_ size_t perfpersist_interleave_damaged(struct perfpersist_interleave *i)
{
	size_t damaged = 0;

	for (size_t k = 0; k < i->n; k++)
		damaged += perfpersist_merge_damaged(i->all[k].merge);
	return damaged;
}
