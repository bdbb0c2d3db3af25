/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A walk over one ring of a snapshot, from the newest record to the oldest. */
#pragma once

#include "client/rings/snapshot.h"

struct perfpersist_cursor {
	const struct perfpersist_snapshot *snapshot;
	const struct snapshot_ring *ring;
	uint64_t taken;	   /* the snapshot's, when the walk began */
	uint64_t distance; /* of the next record from the head */
	int end;	   /* what to return for ever; 1: there may be more */
};

void cursor_init(struct perfpersist_cursor *c, const struct perfpersist_snapshot *s, size_t ring);

/* The record at a distance from the head of a ring, decoded: 1, 0 or -EBADMSG. */
int cursor_decode_at(const struct snapshot_ring *ring, uint64_t distance,
		     struct perfpersist_sample *ret);
