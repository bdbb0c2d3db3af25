// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The copies of an event's rings: the reader's half of the protocol in proto/ring.h. Never stops
 * the recorder and trusts nothing in a ring: offsets are taken modulo the checked sizes, whatever
 * head and reserve say.
 */
#include "client/rings/snapshot.h"

#include <string.h>

#include "client/public.h"
#include "client/rings/memory.h"
#include "client/rings/sample.h"

/* A copy of which more than half was overwritten meanwhile is made again, at most so often: we were
 * preempted for a while. If hardly anything is left even then, some times more. */
#define SNAPSHOT_TRIES 4
#define SNAPSHOT_TRIES_MAX 16

#define LARGE_PAGE (2UL << 20)
#define COPY_PIECE LARGE_PAGE

static size_t copy_size(const struct pp_ring_header *h)
{
	size_t size = h->data_size + h->spill_size;

	/* Large copies begin on huge pages of their own, small ones share one. */
	return ALIGN_TO(size, size >= LARGE_PAGE ? LARGE_PAGE : (size_t)64);
}

/* Allocates memory for the copies of the event's rings, in place of the present ones. */
static int lay_out(struct perfpersist_snapshot *s)
{
	const struct perfpersist_event *e = s->event;
	_cleanup_free_ struct snapshot_ring *rings = calloc(e->n + 1, sizeof(*rings));
	size_t size = 0, memory_size;
	uint8_t *memory;
	bool fresh;

	if (!rings)
		return client_fail(-ENOMEM, "cannot take a snapshot: out of memory");
	for (size_t i = 0; i < e->n; i++)
		size += copy_size(&e->rings[i].header);
	memory = client_memory_get(size, &memory_size, &fresh);
	if (!memory)
		return client_fail(-ENOMEM,
				   "cannot take a snapshot of %s/%s: no memory for %zu bytes",
				   e->base.ns, e->base.name, size);
	client_memory_put(s->memory, s->memory_size);
	free(s->rings);
	s->memory = memory;
	s->memory_size = memory_size;
	s->n = e->n;
	s->generation = e->generation;
	s->rings = TAKE_PTR(rings);
	for (size_t i = 0; i < s->n; i++) {
		struct snapshot_ring *ring = &s->rings[i];

		ring->header = e->rings[i].header;
		ring->catalog = &e->catalog;
		ring->data = memory;
		ring->touched = fresh ? ring->header.data_size + ring->header.spill_size : 0;
		memory += copy_size(&ring->header);
	}
	return 0;
}

_public_ int perfpersist_snapshot_new(struct perfpersist_event *e,
				      struct perfpersist_snapshot **ret)
{
	struct perfpersist_snapshot *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return client_fail(-ENOMEM, "cannot take a snapshot: out of memory");
	s->event = client_event_ref(e);
	r = lay_out(s);
	if (r < 0) {
		perfpersist_snapshot_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

_public_ void perfpersist_snapshot_free(struct perfpersist_snapshot *s)
{
	if (!s)
		return;
	client_memory_put(s->memory, s->memory_size);
	perfpersist_event_free(s->event);
	free(s->rings);
	free(s);
}

/*
 * Copies n bytes at an offset of the data. New memory gets its pages a piece at a time, so that the
 * kernel's zeroes are still in the cache when they are overwritten. A ring fills from its end
 * downward: the pages above `touched` are populated.
 */
static int copy_part(struct snapshot_ring *rin, const struct client_ring *ring, size_t at, size_t n)
{
	size_t begin = at;

	while (n > 0) {
		size_t piece = at < rin->touched ? MIN(n, COPY_PIECE) : n;
		int r;

		if (at < rin->touched)
			client_memory_touch(rin->data + at,
					    rin->data + MIN(at + piece, rin->touched));
		r = client_ring_read(ring, rin->header.header_size + at, rin->data + at, piece);
		if (r < 0)
			return r;
		at += piece;
		n -= piece;
	}
	rin->touched = MIN(rin->touched, begin);
	return 0;
}

/* Copies the records in [head, head + filled), which may wrap around the end of the data once. */
static int copy(struct snapshot_ring *rin, const struct client_ring *ring, uint64_t filled)
{
	const struct pp_ring_header *h = &rin->header;
	size_t at = rin->head & (h->data_size - 1);
	size_t first = MIN(filled, h->data_size - at);
	size_t rest = filled - first;
	int r;

	r = copy_part(rin, ring, at, rest ? first + h->spill_size : first);
	return r < 0 || !rest ? r : copy_part(rin, ring, 0, rest);
}

static int take_once(struct snapshot_ring *rin, const struct client_ring *ring, uint64_t since,
		     uint64_t max, uint64_t *ret_filled)
{
	uint64_t size = rin->header.data_size, filled, overwritten;
	int r;

	rin->head = CLIENT_RING_LIVE(ring, head);
	filled = MIN(MIN(since - rin->head, size), max);
	r = copy(rin, ring, filled);
	if (r < 0)
		return r;

	/* Bytes overwritten during the copy are at the far end. */
	atomic_thread_fence(memory_order_acquire);
	overwritten = rin->head - CLIENT_RING_LIVE(ring, reserve);
	rin->limit = overwritten < size ? MIN(size - overwritten, filled) : 0;
	rin->has_begin = rin->limit == 0 - rin->head;
	*ret_filled = filled;
	return 0;
}

void snapshot_ring_take(struct snapshot_ring *rin, const struct client_ring *ring)
{
	/* A ring begins at 0. */
	snapshot_ring_take_newer(rin, ring, 0, UINT64_MAX);
}

void snapshot_ring_take_newer(struct snapshot_ring *rin, const struct client_ring *ring,
			      uint64_t since, uint64_t max)
{
	uint64_t filled;

	rin->damaged = rin->is_cut = false;
	for (int i = 0; i < SNAPSHOT_TRIES_MAX; i++) {
		uint64_t part = i < SNAPSHOT_TRIES ? 2 : 16;

		if (take_once(rin, ring, since, max, &filled) < 0 || rin->head % 8) {
			rin->damaged = true;
			rin->limit = 0;
			return;
		}
		if (rin->limit >= filled / part)
			return;
	}
}

_public_ int perfpersist_snapshot_take(struct perfpersist_snapshot *s)
{
	int r = s->generation == s->event->generation ? 0 : lay_out(s);

	if (r < 0)
		return r;
	s->taken++;
	for (size_t i = 0; i < s->n; i++)
		snapshot_ring_take(&s->rings[i], &s->event->rings[i]);
	return 0;
}

int snapshot_record(const struct snapshot_ring *ring, uint64_t distance, const void **ret_record,
		    size_t *ret_size)
{
	uint64_t left = distance < ring->limit ? ring->limit - distance : 0;
	const uint8_t *p;
	size_t size;

	if (ring->damaged)
		return -EBADMSG;
	if (left == 0)
		return 0;
	if (left < 8) /* positions are multiples of 8, unless forged */
		return -EBADMSG;
	p = ring->data + ((ring->head + distance) & (ring->header.data_size - 1));
	size = sample_record_size(p, ring->header.spill_size);
	if (size == 0)
		return -EBADMSG;
	if (size > left) /* cut off by newer records; the ring's first record never is */
		return ring->has_begin ? -EBADMSG : 0;
	*ret_record = p;
	*ret_size = size;
	return 1;
}
