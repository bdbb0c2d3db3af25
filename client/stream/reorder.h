/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Returns records and changes of several events in order of time. A recorder writes a record a
 * moment after it reads the clock, so the records found so far are complete up to a little while
 * ago, not up to now. Does not know where records come from.
 */
#pragma once

#include "client/perfpersist.h"

struct held {
	struct perfpersist_stream_item item; /* of a record's sample: see bind() */
	struct perfpersist_event *event;     /* that came with new rings; else NULL */
	size_t at;			     /* of the record in bytes[] */
	size_t order;
};

struct reorder {
	uint8_t *bytes;
	size_t n_bytes, cap_bytes;
	struct held *all;
	size_t n;
	size_t next, ready; /* already returned; may be returned */
	size_t pushed;
	bool unsorted;
};

void reorder_done(struct reorder *reorder);

/* Copies an item, with its record. Takes event over (NULL: none), even if it fails. -ENOMEM. */
int reorder_push(struct reorder *reorder, const struct perfpersist_stream_item *item,
		 struct perfpersist_event *event);

/* Makes room, so that the next push of an item without a record cannot fail. -ENOMEM. */
int reorder_reserve(struct reorder *reorder);

/* Allows reorder_pop() to return all items with a time below `until`, and forgets returned ones. */
void reorder_release(struct reorder *reorder, uint64_t until);

/* Returns the next of these in order of time, and of push for the same time; its event is then the
 * caller's. Its pointers are valid until the next push or release. False: there is none. */
bool reorder_pop(struct reorder *reorder, struct perfpersist_stream_item *ret,
		 struct perfpersist_event **ret_event);
