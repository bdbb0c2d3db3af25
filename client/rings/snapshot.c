// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the copies of an event's rings: the reader's half of the protocol in proto/ring.h.
 * The recorder is never stopped, and nothing in a ring is believed: whatever head and reserve
 * say, offsets are taken modulo the checked sizes.
 */
#include "client/rings/snapshot.h"

#include <string.h>

#include "client/public.h"
#include "client/rings/memory.h"
#include "client/rings/sample.h"

/* How often to copy a ring again of which more than half was overwritten meanwhile: we were
 * not running for a while. */
#define SNAPSHOT_TRIES 4

#define LARGE_PAGE (2UL << 20)
#define COPY_PIECE LARGE_PAGE

static size_t copy_size(const struct pp_ring_header *h)
{
	size_t size = h->data_size + h->spill_size;

	/* Large copies begin on huge pages of their own, small ones share one. */
	return ALIGN_TO(size, size >= LARGE_PAGE ? LARGE_PAGE : (size_t)64);
}

/* Memory and places for the copies of the event's rings, in place of those that s has. */
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
		struct snapshot_ring *r = &s->rings[i];

		r->header = e->rings[i].header;
		r->catalog = &e->catalog;
		r->data = memory;
		r->touched = fresh ? r->header.data_size + r->header.spill_size : 0;
		memory += copy_size(&r->header);
	}
	return 0;
}

_public_ int perfpersist_snapshot_new(struct perfpersist_event *e,
				      struct perfpersist_snapshot **ret)
{
	struct perfpersist_snapshot *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return client_fail(-ENOMEM, "cannot take a snapshot: out of memory");
	s->event = client_event_ref(e);
	error = lay_out(s);
	if (error < 0) {
		perfpersist_snapshot_free(s);
		return error;
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
 * Copies n bytes at an offset of the data. Where the memory is new it is given its pages a piece
 * at a time, so that the kernel's zeroes are still in the cache when they are overwritten. A
 * ring fills from its end downward: what lies above `touched` has its pages.
 */
static int copy_part(struct snapshot_ring *r, const struct client_ring *ring, size_t at, size_t n)
{
	size_t begin = at;

	while (n > 0) {
		size_t piece = at < r->touched ? MIN(n, COPY_PIECE) : n;
		int error;

		if (at < r->touched)
			client_memory_touch(r->data + at, r->data + MIN(at + piece, r->touched));
		error = client_ring_read(ring, r->header.header_size + at, r->data + at, piece);
		if (error < 0)
			return error;
		at += piece;
		n -= piece;
	}
	r->touched = MIN(r->touched, begin);
	return 0;
}

/* The records in [head, head + filled), which may run over the end of the data once. */
static int copy(struct snapshot_ring *r, const struct client_ring *ring, uint64_t filled)
{
	const struct pp_ring_header *h = &r->header;
	size_t at = r->head & (h->data_size - 1);
	size_t first = MIN(filled, h->data_size - at);
	size_t rest = filled - first;
	int error;

	error = copy_part(r, ring, at, rest ? first + h->spill_size : first);
	return error < 0 || !rest ? error : copy_part(r, ring, 0, rest);
}

static int take_once(struct snapshot_ring *r, const struct client_ring *ring, uint64_t *ret_filled)
{
	uint64_t size = r->header.data_size, written, filled, overwritten;
	int error;

	r->head = CLIENT_RING_LIVE(ring, head);
	written = 0 - r->head;
	filled = MIN(written, size);
	error = copy(r, ring, filled);
	if (error < 0)
		return error;

	/* What was overwritten while we copied lies at the far end. */
	atomic_thread_fence(memory_order_acquire);
	overwritten = r->head - CLIENT_RING_LIVE(ring, reserve);
	r->limit = overwritten < size ? MIN(size - overwritten, written) : 0;
	r->has_begin = r->limit == written;
	*ret_filled = filled;
	return 0;
}

void snapshot_ring_take(struct snapshot_ring *r, const struct client_ring *ring)
{
	uint64_t filled;

	r->damaged = false;
	for (int i = 0; i < SNAPSHOT_TRIES; i++) {
		if (take_once(r, ring, &filled) < 0 || r->head % 8) {
			r->damaged = true;
			r->limit = 0;
			return;
		}
		if (r->limit >= filled / 2)
			return;
	}
}

_public_ int perfpersist_snapshot_take(struct perfpersist_snapshot *s)
{
	int error = s->generation == s->event->generation ? 0 : lay_out(s);

	if (error < 0)
		return error;
	s->taken++;
	for (size_t i = 0; i < s->n; i++)
		snapshot_ring_take(&s->rings[i], &s->event->rings[i]);
	return 0;
}

int snapshot_record(const struct snapshot_ring *r, uint64_t distance, const void **ret_record,
		    size_t *ret_size)
{
	uint64_t left = distance < r->limit ? r->limit - distance : 0;
	const uint8_t *p;
	size_t size;

	if (r->damaged)
		return -EBADMSG;
	if (left == 0)
		return 0;
	if (left < 8) /* positions are multiples of 8, unless someone forged them */
		return -EBADMSG;
	p = r->data + ((r->head + distance) & (r->header.data_size - 1));
	size = sample_record_size(p, r->header.spill_size);
	if (size == 0)
		return -EBADMSG;
	if (size > left) /* cut off by newer records; at the ring's beginning nothing is */
		return r->has_begin ? -EBADMSG : 0;
	*ret_record = p;
	*ret_size = size;
	return 1;
}
