// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Merges the records of all rings in order of time.
 *
 * There is one merge, from the newest record on, because rings are walked that way: a heap holds
 * each ring's next record. The oldest-first order is the same walk, noted down as far as it is
 * wanted and then read from its end; so the newest ten records cost ten steps, however large the
 * rings are. If records have the same time, those of the later ring count as newer.
 */
#include "client/public.h"

#include "client/rings/cursor.h"
#include "client/rings/heap.h"

struct source {
	struct perfpersist_cursor cursor;
	struct perfpersist_sample next;
};

/* Where a record is: a distance is at most PP_DATA_SIZE_MAX. */
struct place {
	uint32_t ring;
	uint32_t distance;
};

struct perfpersist_merge {
	struct perfpersist_snapshot *snapshot;
	uint64_t taken;
	enum perfpersist_order order;
	size_t left; /* newest first: number of records still wanted */
	size_t damaged;
	struct source *sources; /* one per ring */
	uint32_t *heap;		/* rings with a next record; the newest on top */
	size_t n_heap;
	struct place *places; /* oldest first: newest to oldest, read backward */
	size_t n_places, cap_places;
};

static bool is_newer(const void *merge, uint32_t a, uint32_t b)
{
	const struct perfpersist_merge *m = merge;
	uint64_t x = m->sources[a].next.time, y = m->sources[b].next.time;

	return x != y ? x > y : a > b;
}

/* Fetches the ring's next record; returns whether there is one. */
static bool advance(struct perfpersist_merge *m, uint32_t ring)
{
	struct source *s = &m->sources[ring];
	int r = perfpersist_cursor_next(&s->cursor, &s->next);

	if (r == -EBADMSG) {
		m->damaged++;
		m->snapshot->rings[ring].is_cut = true;
	}
	return r == 1;
}

static void fill_heap(struct perfpersist_merge *m)
{
	for (uint32_t i = 0; i < m->snapshot->n; i++) {
		cursor_init(&m->sources[i].cursor, m->snapshot, i);
		if (advance(m, i))
			m->heap[m->n_heap++] = i;
	}
	heap_make(m->heap, m->n_heap, is_newer, m);
}

/* Takes the newest remaining record and its ring. False at the end. */
static bool take_newest(struct perfpersist_merge *m, uint32_t *ret_ring,
			struct perfpersist_sample *ret)
{
	if (m->n_heap == 0)
		return false;
	*ret_ring = m->heap[0];
	*ret = m->sources[m->heap[0]].next;
	if (!advance(m, m->heap[0]))
		m->heap[0] = m->heap[--m->n_heap];
	heap_sift(m->heap, m->n_heap, 0, is_newer, m);
	return true;
}

static int add_place(struct perfpersist_merge *m, uint32_t ring, uint32_t distance)
{
	if (m->n_places == m->cap_places) {
		size_t cap = m->cap_places ? 2 * m->cap_places : 64;
		struct place *places = reallocarray(m->places, cap, sizeof(*places));

		if (!places)
			return client_fail(-ENOMEM, "cannot sort the records: out of memory");
		m->places = places;
		m->cap_places = cap;
	}
	m->places[m->n_places++] = (struct place){ ring, distance };
	return 0;
}

static uint32_t distance_of(const struct snapshot_ring *r, const void *record)
{
	uint64_t offset = (uint64_t)((const uint8_t *)record - r->data);

	return (uint32_t)((offset - r->head) & (r->header.data_size - 1));
}

static int note_places(struct perfpersist_merge *m)
{
	struct perfpersist_sample sample;
	uint32_t ring;

	while (m->n_places < m->left && take_newest(m, &ring, &sample)) {
		uint32_t distance = distance_of(&m->snapshot->rings[ring], sample.record);
		int r = add_place(m, ring, distance);

		if (r < 0)
			return r;
	}
	return 0;
}

static void merge_cleanup(struct perfpersist_merge **m)
{
	perfpersist_merge_free(*m);
}

_public_ int perfpersist_merge_new(struct perfpersist_snapshot *s, enum perfpersist_order order,
				   size_t newest, struct perfpersist_merge **ret)
{
	_cleanup_(merge_cleanup) struct perfpersist_merge *m = calloc(1, sizeof(*m));
	int r;

	if (order != PERFPERSIST_OLDEST_FIRST && order != PERFPERSIST_NEWEST_FIRST)
		return client_fail(-EINVAL, "cannot sort the records: unknown order %d", order);
	if (!m)
		return client_fail(-ENOMEM, "cannot sort the records: out of memory");
	m->sources = calloc(s->n + 1, sizeof(*m->sources));
	m->heap = calloc(s->n + 1, sizeof(*m->heap));
	if (!m->sources || !m->heap)
		return client_fail(-ENOMEM, "cannot sort the records: out of memory");
	m->snapshot = s;
	m->taken = s->taken;
	m->order = order;
	m->left = newest ? newest : SIZE_MAX;
	fill_heap(m);
	if (order == PERFPERSIST_OLDEST_FIRST) {
		r = note_places(m);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(m);
	return 0;
}

_public_ int perfpersist_merge_next(struct perfpersist_merge *m, struct perfpersist_sample *ret)
{
	uint32_t ring;

	if (m->taken != m->snapshot->taken)
		return -ESTALE;
	if (m->order == PERFPERSIST_OLDEST_FIRST) {
		const struct place *p;

		if (m->n_places == 0)
			return 0;
		p = &m->places[--m->n_places];
		return cursor_decode_at(&m->snapshot->rings[p->ring], p->distance, ret);
	}
	if (m->left == 0 || !take_newest(m, &ring, ret))
		return 0;
	m->left--;
	return 1;
}

_public_ size_t perfpersist_merge_damaged(struct perfpersist_merge *m)
{
	return m->damaged;
}

_public_ void perfpersist_merge_free(struct perfpersist_merge *m)
{
	if (!m)
		return;
	free(m->sources);
	free(m->heap);
	free(m->places);
	free(m);
}
