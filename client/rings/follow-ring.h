/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Following one ring: where we are in it, what was found since the last look, and the count of
 * what was overwritten before. Knows nothing of time, other rings, or what is in a record.
 */
#pragma once

#include "client/rings/ring.h"

struct follow_ring {
	struct pp_ring_header header; /* checked; of the ring that was looked at */

	/* Where we are: what lies at or above pos has been found, or is lost. */
	uint64_t pos;
	uint64_t begin;	      /* records written before the first that is followed */
	uint64_t found;	      /* since then */
	uint64_t overwritten; /* as of the last moment at which it could be told */
	uint64_t read;	      /* for the caller to count */
	uint64_t written;     /* down to pos, if is_counted */
	bool is_counted;
	bool is_begin_exact;
	bool has_lost;
	bool is_damaged; /* no ring looks like this; nothing is found any more */

	/* What the last look found: private copies, and where in them records begin. */
	uint8_t *copy;
	size_t copy_size;
	unsigned copy_idle; /* looks for which a quarter of it would have done */
	size_t first; /* bytes before the end of the ring's data; the rest is behind the spill */
	uint32_t *places; /* the newest first: distances from the copy's beginning */
	size_t n_places, cap_places;
};

/*
 * Begins with up to `newest` of the records that are there (0: with none), which are then in
 * places. -ENOMEM.
 */
int follow_ring_begin(struct follow_ring *f, const struct client_ring *ring, size_t newest);

/* Begins where the ring itself began: all of it is new. */
void follow_ring_begin_empty(struct follow_ring *f, const struct client_ring *ring);

/* Of what was found at the beginning, keeps the newest n. */
void follow_ring_keep(struct follow_ring *f, size_t n);

/* Looks for what is new; places are then the new ones, perhaps none. -ENOMEM: nothing changed. */
int follow_ring_look(struct follow_ring *f, const struct client_ring *ring);

/* The record at places[i]; valid until the next look. */
const void *follow_ring_record(const struct follow_ring *f, size_t i, size_t *ret_size);

void follow_ring_done(struct follow_ring *f);
