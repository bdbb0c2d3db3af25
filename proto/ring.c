// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a ring's header against the contract in ring.h, and reads its live words. No I/O, no allocation. */
#include "catalog.h"
#include "ring-live.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>

/* Attempts to find a moment without a record under way. */
#define STILL_TRIES 1000

static bool is_power_of_two(__u64 v)
{
	return v && !(v & (v - 1));
}

static bool is_terminated(const char *s, size_t size)
{
	return memchr(s, 0, size) != NULL;
}

static bool sizes_fit(const struct pp_ring_header *h, size_t size)
{
	return h->header_size >= PP_RING_PAGE && h->header_size % PP_RING_PAGE == 0 &&
	       is_power_of_two(h->data_size) && h->data_size >= PP_DATA_SIZE_MIN &&
	       h->data_size <= PP_DATA_SIZE_MAX && h->spill_size >= 8 &&
	       h->spill_size <= PP_SPILL_SIZE_MAX && h->spill_size % 8 == 0 &&
	       h->spill_size <= h->data_size &&
	       pp_ring_size(h->header_size, h->data_size, h->spill_size) <= size &&
	       h->format_size <= h->header_size - PP_RING_FORMAT_OFFSET &&
	       h->attr_size <= sizeof(h->attr);
}

/* Rings of version 1 have 0 there, and one source. */
static bool sources_fit(const struct pp_ring_header *h)
{
	return h->n_sources <= 1 ||
	       (h->n_sources <= PP_SOURCES_MAX && h->sample_type == PERF_SAMPLE_IDENTIFIER);
}

int pp_ring_check(const void *ring, size_t size, struct pp_ring_header *ret)
{
	struct pp_ring_header h;

	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, ring, sizeof(h));
	if (h.magic != PP_RING_MAGIC || h.version == 0)
		return -EBADMSG;
	if (h.version > PP_RING_VERSION)
		return -EPROTONOSUPPORT;
	if (!sizes_fit(&h, size) || !sources_fit(&h) || !is_terminated(h.ns, sizeof(h.ns)) ||
	    !is_terminated(h.name, sizeof(h.name)) || !is_terminated(h.event, sizeof(h.event)))
		return -EBADMSG;
	*ret = h;
	return 0;
}

bool pp_ring_read_live(uint64_t (*load)(const void *ring, size_t at), const void *ring,
		       struct pp_ring_live *ret)
{
	const size_t reserve = PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, reserve);
	const size_t head = PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, head);

	for (int i = 0; i < STILL_TRIES; i++) {
		for (size_t at = 0; at < sizeof(*ret); at += sizeof(uint64_t)) {
			uint64_t word = load(ring, PP_RING_LIVE_OFFSET + at);

			memcpy((char *)ret + at, &word, sizeof(word));
		}
		ret->reserve = load(ring, reserve); /* after the counts */
		if (ret->reserve == ret->head && load(ring, head) == ret->head)
			return true;
	}
	return false;
}
