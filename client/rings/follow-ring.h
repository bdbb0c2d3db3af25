/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follows one ring: the position in it, the records found by the last look, and the count of
 * overwritten ones. Knows nothing of time, other rings, or a record's contents. */
#pragma once

#include "client/rings/ring.h"

struct follow_ring {
	struct pp_ring_header header; /* checked; of the followed ring */

	/* Everything at or above pos has been found, or is lost. */
	uint64_t pos;
	uint64_t begin;	      /* records written before the first that is followed */
	uint64_t found;	      /* since then */
	uint64_t overwritten; /* as of the last instant at which it was known */
	uint64_t read;	      /* counted by the caller */
	uint64_t written;     /* down to pos, if is_counted */
	bool is_counted;
	bool is_begin_exact;
	bool has_lost;
	bool is_damaged; /* not a valid ring: nothing is found any more */

	/* The last look's records: private copies, and the offsets at which records begin. */
	uint8_t *copy;
	size_t copy_size;
	unsigned copy_idle; /* looks for which a quarter of it sufficed */
	size_t first;	  /* bytes before the end of the ring's data; the rest follows the spill */
	uint32_t *places; /* newest first: offsets in the copy */
	size_t n_places, cap_places;
};

/* Begins with up to `newest` of the present records (0: none), which are then in places.
 * -ENOMEM. */
int follow_ring_begin(struct follow_ring *f, const struct client_ring *ring, size_t newest);

/* Begins at the ring's own beginning: all records are new. */
void follow_ring_begin_empty(struct follow_ring *f, const struct client_ring *ring);

/* Keeps the newest n of the records found at the beginning. */
void follow_ring_keep(struct follow_ring *f, size_t n);

/* Looks for new records; places then has them, perhaps none. -ENOMEM: nothing changed. */
int follow_ring_look(struct follow_ring *f, const struct client_ring *ring);

/* The record at places[i]; valid until the next look. */
const void *follow_ring_record(const struct follow_ring *f, size_t i, size_t *ret_size);

void follow_ring_done(struct follow_ring *f);
