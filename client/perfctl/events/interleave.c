// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/interleave.h"

/* Of records of one time those of the earlier event come first. */
static bool is_before(const struct interleave *i, uint32_t a, uint32_t b)
{
	uint64_t x = i->all[a].next.time, y = i->all[b].next.time;

	return x != y ? x < y : a < b;
}

static void sift(struct interleave *i, size_t at)
{
	for (;;) {
		size_t first = at;
		uint32_t moved = i->heap[at];

		for (size_t child = 2 * at + 1; child < 2 * at + 3 && child < i->n_heap; child++)
			if (is_before(i, i->heap[child], i->heap[first]))
				first = child;
		if (first == at)
			return;
		i->heap[at] = i->heap[first];
		i->heap[first] = moved;
		at = first;
	}
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

static int fetch(struct interleaved *one)
{
	int r = perfpersist_merge_next(one->merge, &one->next);

	one->has_next = r > 0;
	if (r > 0)
		note(one, &one->next);
	return r < 0 ? r : 0;
}

/* What has been written by now, so that less in the snapshot means that some is overwritten. */
static int look(struct interleaved *one)
{
	one->info.sz = sizeof(one->info);
	one->n_rings = perfpersist_event_rings(one->event);
	one->rings = calloc(one->n_rings + 1, sizeof(*one->rings));
	if (!one->rings)
		return -ENOMEM;
	for (size_t i = 0; i < one->n_rings; i++) {
		struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
		int r = perfpersist_ring_stat(one->event, i, &stat);

		if (r < 0)
			return r;
		one->rings[i].cpu = (uint32_t)perfpersist_ring_cpu(one->event, i);
		one->rings[i].written = stat.records;
	}
	return perfpersist_event_info(one->event, &one->info);
}

/* All snapshots come before anything else is done, so that they are of nearly one moment. */
static int take_all(struct interleave *i)
{
	int r = 0;

	for (size_t k = 0; r >= 0 && k < i->n; k++) {
		r = look(&i->all[k]);
		if (r >= 0)
			r = perfpersist_snapshot_new(i->all[k].event, &i->all[k].snapshot);
	}
	for (size_t k = 0; r >= 0 && k < i->n; k++)
		r = perfpersist_snapshot_take(i->all[k].snapshot);
	return r;
}

static int sort_all(struct interleave *i)
{
	int r = 0;

	for (uint32_t k = 0; r >= 0 && k < i->n; k++) {
		struct interleaved *one = &i->all[k];

		r = perfpersist_merge_new(one->snapshot, PERFPERSIST_OLDEST_FIRST, 0, &one->merge);
		if (r >= 0)
			r = fetch(one);
		if (one->has_next)
			i->heap[i->n_heap++] = k;
	}
	for (size_t k = i->n_heap / 2; k-- > 0;)
		sift(i, k);
	return r;
}

int interleave_new(struct perfpersist_event **events, size_t n, struct interleave *ret)
{
	struct interleave i = { .n = n };
	int r = -ENOMEM;

	i.all = calloc(n + 1, sizeof(*i.all));
	i.heap = calloc(n + 1, sizeof(*i.heap));
	for (size_t k = 0; i.all && k < n; k++)
		i.all[k].event = events[k];
	if (i.all && i.heap)
		r = take_all(&i);
	if (r >= 0)
		r = sort_all(&i);
	if (r < 0) {
		interleave_done(&i);
		return r;
	}
	*ret = i;
	return 0;
}

void interleave_done(struct interleave *i)
{
	for (size_t k = 0; i->all && k < i->n; k++) {
		perfpersist_merge_free(i->all[k].merge);
		perfpersist_snapshot_free(i->all[k].snapshot);
		free(i->all[k].rings);
	}
	free(i->all);
	free(i->heap);
	*i = (struct interleave){};
}

const struct perfpersist_sample *interleave_next(const struct interleave *i, uint32_t *ret_event)
{
	if (!i->n_heap)
		return NULL;
	*ret_event = i->heap[0];
	return &i->all[i->heap[0]].next;
}

int interleave_advance(struct interleave *i)
{
	struct interleaved *one = &i->all[i->heap[0]];
	int r = fetch(one);

	if (!one->has_next)
		i->heap[0] = i->heap[--i->n_heap];
	if (i->n_heap)
		sift(i, 0);
	return r;
}

size_t interleave_damaged(const struct interleave *i)
{
	size_t damaged = 0;

	for (size_t k = 0; k < i->n; k++)
		damaged += perfpersist_merge_damaged(i->all[k].merge);
	return damaged;
}

uint64_t interleaved_begin(const struct interleaved *one)
{
	uint64_t begin = 0;

	for (size_t r = 0; r < one->n_rings; r++)
		if (one->rings[r].held < one->rings[r].written)
			begin = MAX(begin, one->rings[r].oldest);
	return begin;
}
