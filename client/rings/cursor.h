/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A walk over one ring of a snapshot, from the newest record to the oldest. */
#pragma once

#include "client/rings/snapshot.h"

struct perfpersist_cursor {
	const struct perfpersist_snapshot *snapshot;
	const struct snapshot_ring *ring;
	uint64_t taken;	   /* the snapshot's count when the walk began */
	uint64_t distance; /* from the head to the next record */
	int end;	   /* the final result; 1: there may be more records */
};

void cursor_init(struct perfpersist_cursor *c, const struct perfpersist_snapshot *s, size_t ring);

/* Decodes the record at a distance from the head of a ring: 1, 0 or -EBADMSG. */
int cursor_decode_at(const struct snapshot_ring *ring, uint64_t distance,
		     struct perfpersist_sample *ret);
