// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The position in a ring while it is written, by the protocol of proto/ring.h.
 *
 * The found records are those that could be walked. Lost ones cannot be walked, so they are counted
 * from the ring's own count of records. That count and head are two words, and belong together only
 * if no record was under way while both were read. A ring that never rests may offer no such
 * instant; then the count stays behind, and is corrected at the next one.
 */
#include "client/rings/follow-ring.h"

#include <stdatomic.h>
#include <string.h>

#include "client/public.h"
#include "client/rings/memory.h"
#include "client/rings/sample.h"

/* How often to look for an instant without a record under way: at each look, and at the beginning,
 * which nothing later corrects. */
#define STILL_TRIES 100
#define STILL_TRIES_BEGIN 10000

/* Memory for a larger copy is freed only after a quarter of it has sufficed so many times: the first
 * touch of new memory is expensive. */
#define COPY_KEPT (1UL << 20)
#define COPY_IDLE_LOOKS 256

struct moment {
	uint64_t head;
	uint64_t records;
	bool is_still; /* records counts exactly down to head */
};

/* Every writer moves reserve before it counts its record. So while reserve still equals the head
 * that was read, the count includes only records at or above head. Who makes a copy looks for that instant;
 * what was overwritten during the copy is another thing, which `reserve` tells. */
static struct moment find_moment(const struct client_ring *ring, int tries)
{
	struct moment m;

	if (!ring->map) /* a file: each look is a system call, and nobody writes it */
		tries = 1;
	do {
		m.head = CLIENT_RING_LIVE(ring, head);
		m.records = CLIENT_RING_LIVE(ring, records);
		m.is_still = ring->is_file ? CLIENT_RING_LIVE(ring, nest) == 0
					   : CLIENT_RING_LIVE(ring, reserve) == m.head;
	} while (!m.is_still && --tries > 0);
	return m;
}

/* ── Copying ────────────────────────────────────────────────────────────────────────────── */

static int make_room(struct follow_ring *f, size_t size)
{
	size_t most = f->header.data_size + f->header.spill_size;
	uint8_t *copy;

	if (f->copy_size > COPY_KEPT && size < f->copy_size / 4) {
		if (++f->copy_idle < COPY_IDLE_LOOKS)
			return 0;
	} else if (size <= f->copy_size) {
		f->copy_idle = 0;
		return 0;
	} else {
		size = MAX(size, MIN(2 * f->copy_size, most));
	}
	copy = malloc(size);
	if (!copy && size <= f->copy_size) /* a waste, but no failure */
		return 0;
	if (!copy)
		return client_fail(-ENOMEM, "cannot follow %s/%s: no memory for %zu bytes",
				   f->header.ns, f->header.name, size);
	free(f->copy);
	f->copy = copy;
	f->copy_size = size;
	f->copy_idle = 0;
	return 0;
}

/* Copies [head, head + n), which may wrap around the end of the data once. */
static int copy(struct follow_ring *f, const struct client_ring *ring, uint64_t head, size_t n)
{
	const struct pp_ring_header *h = &f->header;
	size_t at = head & (h->data_size - 1), rest;
	int r;

	f->first = MIN(n, h->data_size - at);
	rest = n - f->first;
	r = client_ring_read(ring, h->header_size + at, f->copy,
			     rest ? f->first + h->spill_size : f->first);
	if (r < 0 || !rest)
		return r;
	return client_ring_read(ring, h->header_size, f->copy + f->first + h->spill_size, rest);
}

static const uint8_t *at_distance(const struct follow_ring *f, size_t distance)
{
	return f->copy + distance + (distance >= f->first ? f->header.spill_size : 0);
}

/* How many of the n bytes copied from head on were not overwritten meanwhile. */
static size_t whole_part(const struct follow_ring *f, const struct client_ring *ring, uint64_t head,
			 size_t n)
{
	uint64_t overwritten;

	atomic_thread_fence(memory_order_acquire);
	overwritten = head - CLIENT_RING_LIVE(ring, reserve);
	return overwritten < f->header.data_size ? MIN(n, f->header.data_size - overwritten) : 0;
}

/* ── Walking ────────────────────────────────────────────────────────────────────────────── */

static int add_place(struct follow_ring *f, uint32_t distance)
{
	if (f->n_places == f->cap_places) {
		size_t cap = f->cap_places ? 2 * f->cap_places : 64;
		uint32_t *places = reallocarray(f->places, cap, sizeof(*places));

		if (!places)
			return client_fail(-ENOMEM, "cannot follow %s/%s: out of memory",
					   f->header.ns, f->header.name);
		f->places = places;
		f->cap_places = cap;
	}
	f->places[f->n_places++] = distance;
	return 0;
}

/* Notes where the records in the first n bytes of the copy begin. is_cut: older records were
 * overwritten or are not wanted, so the last one may end behind n; otherwise it must end there. */
static int walk(struct follow_ring *f, size_t n, bool is_cut, size_t *ret_walked)
{
	size_t distance = 0;

	f->n_places = 0;
	while (n - distance >= 8) {
		size_t size = sample_record_size(at_distance(f, distance), f->header.spill_size);
		int r;

		if (size == 0 || (size > n - distance && !is_cut)) {
			f->is_damaged = true;
			break;
		}
		if (size > n - distance)
			break;
		r = add_place(f, (uint32_t)distance);
		if (r < 0)
			return r;
		distance += size;
	}
	*ret_walked = distance;
	return 0;
}

/* Copies as much of [head, head + n) as is wanted and walks it. *ret_walked: bytes of whole
 * records. */
static int find(struct follow_ring *f, const struct client_ring *ring, uint64_t head, size_t n,
		bool is_cut, size_t *ret_walked)
{
	size_t whole;
	int r = make_room(f, n + f->header.spill_size);

	if (r < 0)
		return r;
	if (copy(f, ring, head, n) < 0) { /* a file that was truncated */
		f->is_damaged = true;
		whole = 0;
	} else {
		whole = whole_part(f, ring, head, n);
	}
	return walk(f, whole, is_cut || whole < n, ret_walked);
}

/* ── Counting ───────────────────────────────────────────────────────────────────────────── */

/* pos has reached the instant's head, with n_places records found, and some lost or not. */
static void count(struct follow_ring *f, const struct moment *m, bool has_lost)
{
	uint64_t lost;

	f->found += f->n_places;
	f->has_lost |= has_lost;
	if (m->is_still)
		f->written = m->records;
	else if (f->is_counted && !has_lost)
		f->written += f->n_places;
	f->is_counted = m->is_still || (f->is_counted && !has_lost);
	if (!f->is_counted)
		return;
	if (!f->is_begin_exact && !f->has_lost)
		f->begin = f->written - f->found;
	f->is_begin_exact = true;
	lost = f->written - f->begin - f->found;
	f->overwritten = (int64_t)lost > 0 ? lost : 0;
}

/* Positions are multiples of 8 and only decrease; pos lies between head and the beginning. */
static bool is_position(const struct follow_ring *f, uint64_t head)
{
	return head % 8 == 0 && f->pos - head <= 0 - head;
}

int follow_ring_look(struct follow_ring *f, const struct client_ring *ring)
{
	struct moment m;
	size_t walked = 0;
	uint64_t fresh;
	int r = 0;

	f->n_places = 0;
	if (f->is_damaged)
		return 0;
	m = find_moment(ring, STILL_TRIES);
	if (!is_position(f, m.head)) {
		f->is_damaged = true;
		return 0;
	}
	fresh = f->pos - m.head;
	if (fresh)
		r = find(f, ring, m.head, MIN(fresh, f->header.data_size),
			 fresh > f->header.data_size, &walked);
	if (r < 0) {
		f->n_places = 0;
		return r;
	}
	f->pos = m.head;
	count(f, &m, walked < fresh);
	return 0;
}

/* ── The beginning ──────────────────────────────────────────────────────────────────────── */

void follow_ring_begin_empty(struct follow_ring *f, const struct client_ring *ring)
{
	*f = (struct follow_ring){
		.header = ring->header,
		.is_counted = true,
		.is_begin_exact = true,
	};
}

int follow_ring_begin(struct follow_ring *f, const struct client_ring *ring, size_t newest)
{
	struct moment m = find_moment(ring, STILL_TRIES_BEGIN);
	uint64_t written = 0 - m.head, filled = MIN(written, ring->header.data_size);
	uint64_t wanted = filled;
	size_t walked = 0;
	int r = 0;

	*f = (struct follow_ring){
		.header = ring->header,
		.pos = m.head,
		.begin = m.records,
		.written = m.records,
		.is_counted = m.is_still,
		.is_begin_exact = m.is_still,
		.is_damaged = m.head % 8 != 0,
	};
	if (f->is_damaged)
		return 0;
	if (newest < wanted / f->header.spill_size) /* records may be as large as that */
		wanted = newest * f->header.spill_size;
	if (wanted)
		r = find(f, ring, m.head, wanted, wanted < written, &walked);
	if (r < 0)
		return r;
	follow_ring_keep(f, MIN(newest, f->n_places));
	return 0;
}

void follow_ring_keep(struct follow_ring *f, size_t n)
{
	uint64_t all = f->begin + f->found; /* at the beginning */

	f->n_places = MIN(f->n_places, n);
	f->found = f->n_places;
	f->begin = all - f->found;
}

/* ── Found records ─────────────────────────────────────────────────────────────────────── */

const void *follow_ring_record(const struct follow_ring *f, size_t i, size_t *ret_size)
{
	const uint8_t *record = at_distance(f, f->places[i]);

	*ret_size = sample_record_size(record, f->header.spill_size);
	return record;
}

void follow_ring_done(struct follow_ring *f)
{
	free(f->copy);
	free(f->places);
	f->copy = NULL;
	f->places = NULL;
}
