/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A snapshot: private copies of an event's rings, on which all walking is done. Does not know a
 * record's contents. */
#pragma once

#include "client/rings/event.h"

/* The copy of one ring; data and spill are laid out as in the ring. */
struct snapshot_ring {
	struct pp_ring_header header; /* checked; the event's rings may be renewed meanwhile */
	const struct client_catalog *catalog;
	uint8_t *data;
	uint64_t head;	/* virtual position of the newest record */
	uint64_t limit; /* bytes from head on that are whole; at most data_size */
	bool has_begin; /* nothing was overwritten: the ring's first record is there */
	bool damaged;	/* not a valid ring; limit is then 0 */
	bool is_cut;	/* a merge has found that older records are damaged */
	size_t touched; /* offset in data from which on its pages are populated */
};

struct perfpersist_snapshot {
	struct perfpersist_event *event;
	unsigned generation; /* generation of the event's rings that it is laid out for */
	uint64_t taken;	     /* how often it was taken; a cursor belongs to one taking */
	void *memory;
	size_t memory_size;
	size_t n;
	struct snapshot_ring *rings;
};

/* Copies a ring into *rin, whose header, catalog, data (for data and spill) and touched are set. */
void snapshot_ring_take(struct snapshot_ring *rin, const struct client_ring *ring);

/* The same for the records that are newer than those that began at `since`, and of these only the
 * newest `max` bytes (a multiple of 8). */
void snapshot_ring_take_newer(struct snapshot_ring *rin, const struct client_ring *ring,
			      uint64_t since, uint64_t max);

/*
 * The whole record that begins `distance` bytes above the ring's head. Returns 1 with
 * *ret_record (inside the copy) and *ret_size, a multiple of 8, at least 8; 0 at the end;
 * -EBADMSG.
 */
int snapshot_record(const struct snapshot_ring *ring, uint64_t distance, const void **ret_record,
		    size_t *ret_size);
