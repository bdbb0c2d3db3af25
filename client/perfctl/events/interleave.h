/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of several events' rings as they are at one moment, in order of time; and of each
 * event how far back they reach.
 */
#pragma once

#include "client/perfctl/perfctl.h"

/* Of one event. */
struct interleaved {
	struct perfpersist_event *event;
	struct perfpersist_info info; /* just before its snapshot */
	struct perfpersist_snapshot *snapshot;
	struct perfpersist_merge *merge;
	struct perfpersist_sample next; /* its record that comes next */
	bool has_next;
	struct ring_history {
		uint32_t cpu;
		uint64_t written; /* records, at least: counted before the snapshot */
		uint64_t held;	  /* of them, that have been given out */
		uint64_t oldest;  /* time of the first of these */
	} * rings;
	size_t n_rings;
};

struct interleave {
	struct interleaved *all;
	size_t n;
	uint32_t *heap; /* of those that have a next record, the one whose turn it is on top */
	size_t n_heap;
};

/* The events stay the caller's, and must live on. -ENOMEM, or as perfpersist_snapshot_take(). */
int interleave_new(struct perfpersist_event **events, size_t n, struct interleave *ret);
void interleave_done(struct interleave *i);

/* The record whose turn it is, and the index of its event; valid until interleave_advance(). NULL:
 * there is none. */
const struct perfpersist_sample *interleave_next(const struct interleave *i, uint32_t *ret_event);
int interleave_advance(struct interleave *i);

/* After the end: rings of which not all could be read. */
size_t interleave_damaged(const struct interleave *i);

/* After the end: the time before which records of an event have been overwritten. 0: none has. */
uint64_t interleaved_begin(const struct interleaved *one);
