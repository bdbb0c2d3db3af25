// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks one ring's copy. Each step moves at least 8 bytes, so the walk ends. */
#include "client/rings/cursor.h"

#include "client/public.h"
#include "client/rings/catalog.h"

void cursor_init(struct perfpersist_cursor *c, const struct perfpersist_snapshot *s, size_t ring)
{
	*c = (struct perfpersist_cursor){
		.snapshot = s,
		.ring = &s->rings[ring],
		.taken = s->taken,
		.end = 1,
	};
}

int cursor_decode_at(const struct snapshot_ring *ring, uint64_t distance,
		     struct perfpersist_sample *ret)
{
	struct perfpersist_sample sample = { .cpu = ring->header.cpu };
	const void *record;
	size_t size;
	int r;

	r = snapshot_record(ring, distance, &record, &size);
	if (r <= 0)
		return r;
	r = client_decode(&ring->header, ring->catalog, record, size, &sample);
	if (r < 0)
		return r;
	*ret = sample;
	return 1;
}

_public_ int perfpersist_cursor_new(struct perfpersist_snapshot *s, size_t ring,
				    struct perfpersist_cursor **ret)
{
	struct perfpersist_cursor *c;

	if (ring >= s->n)
		return client_fail(-EINVAL, "the snapshot has no ring %zu: it has %zu", ring, s->n);
	c = malloc(sizeof(*c));
	if (!c)
		return client_fail(-ENOMEM, "cannot walk the ring: out of memory");
	cursor_init(c, s, ring);
	*ret = c;
	return 0;
}

_public_ int perfpersist_cursor_next(struct perfpersist_cursor *c, struct perfpersist_sample *ret)
{
	if (c->taken != c->snapshot->taken)
		return -ESTALE;
	if (c->end != 1)
		return c->end;
	c->end = cursor_decode_at(c->ring, c->distance, ret);
	if (c->end == 1)
		c->distance += ret->record_size;
	return c->end;
}

_public_ void perfpersist_cursor_free(struct perfpersist_cursor *c)
{
	free(c);
}
