/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is found of several events, and what becomes of them, given out in order of time. A recorder
 * writes a record a moment after it took the time, so that what has been found is whole up to a
 * little while ago, and not up to now. Knows nothing of where it is found.
 */
#pragma once

#include "client/perfpersist.h"

struct held {
	struct perfpersist_stream_item item; /* of a record's sample: see bind() */
	struct perfpersist_event *event;     /* of what came with other rings: these; else NULL */
	size_t at;			     /* of the record in bytes[] */
	size_t order;
};

struct reorder {
	uint8_t *bytes;
	size_t n_bytes, cap_bytes;
	struct held *all;
	size_t n;
	size_t next, ready; /* given out, and may be given out */
	size_t pushed;
	bool unsorted;
};

void reorder_done(struct reorder *reorder);

/* Copies an item, with its record, and takes event over (NULL: there is none), also when it fails.
 * -ENOMEM. */
int reorder_push(struct reorder *reorder, const struct perfpersist_stream_item *item,
		 struct perfpersist_event *event);

/* From here on all with a time below `until` may be given out. Those that were are forgotten. */
void reorder_release(struct reorder *reorder, uint64_t until);

/* The next of these in order of time, those of one time as they were pushed; its event is then the
 * caller's. What it points to is valid until something is pushed or released. Whether there was
 * one. */
bool reorder_pop(struct reorder *reorder, struct perfpersist_stream_item *ret,
		 struct perfpersist_event **ret_event);
