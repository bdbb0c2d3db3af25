/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of one of our events, a lane per CPU, beside perf's records of the same tracepoint.
 * For payload-compare. Knows nothing of the comparison.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "tests/integration/tp-format.h"

struct record {
	uint64_t time;
	uint32_t tid;
	uint32_t raw_size;
	const void *raw;
	size_t order; /* as written, for records of the same time */
	bool taken;   /* ours: it has a counterpart in perf's */
	bool paired;  /* ours: the tracepoint's other recorder has it, too */
};

struct records {
	struct record *list;
	size_t n, room;
};

/* One CPU of one tracepoint. */
struct lane {
	int cpu;
	struct records ours, perfs;
	bool complete; /* our records begin with the event's first */
};

struct tracepoint {
	struct perfpersist_info info;
	struct perfpersist_event *event;
	struct perfpersist_snapshot *snapshot;
	struct tp_format format;
	struct lane *lanes;
	size_t n_lanes;
	size_t compared, gone, extra, absent, wrong;
	uint32_t padding;
};

static inline void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline void append(struct records *r, const struct record *record)
{
	if (r->n == r->room) {
		r->room = r->room ? r->room * 2 : 64;
		r->list = reallocarray(r->list, r->room, sizeof(*r->list));
		if (!r->list)
			die("no memory");
	}
	r->list[r->n] = *record;
	r->list[r->n].order = r->n;
	r->n++;
}

static inline int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static inline void sort(struct records *r)
{
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_time);
}

/* ── what we recorded ───────────────────────────────────────────────────────────────────── */

static inline void read_ring(struct tracepoint *t, size_t ring)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	struct lane *lane = &t->lanes[ring];
	struct perfpersist_cursor *c;
	struct perfpersist_sample s;
	int r;

	lane->cpu = perfpersist_ring_cpu(t->event, ring);
	if (perfpersist_cursor_new(t->snapshot, ring, &c) < 0)
		die(perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(c, &s)) > 0)
		append(&lane->ours, &(struct record){ .time = s.time,
						      .tid = s.tid,
						      .raw = s.raw,
						      .raw_size = (uint32_t)s.raw_size });
	perfpersist_cursor_free(c);
	if (r < 0 || perfpersist_ring_stat(t->event, ring, &stat) < 0)
		die("a ring is damaged");
	/* The cursor found the newest first. */
	for (size_t i = 0; i < lane->ours.n; i++)
		lane->ours.list[i].order = lane->ours.n - i;
	sort(&lane->ours);
	/* If records were written after the copy, this is unknown. */
	lane->complete = stat.records == lane->ours.n;
}

/* missed is the count at the opening. */
static inline void open_event(struct perfpersist *p, struct tracepoint *t)
{
	if (perfpersist_open_by_id(p, t->info.id, &t->event) < 0)
		die(perfpersist_error(p));
	if (perfpersist_event_info(t->event, &t->info) < 0 ||
	    perfpersist_snapshot_new(t->event, &t->snapshot) < 0)
		die(perfpersist_error(NULL));
}

static inline void copy_event(struct tracepoint *t)
{
	if (perfpersist_snapshot_take(t->snapshot) < 0)
		die(perfpersist_error(NULL));
}

static inline void read_event(struct tracepoint *t)
{
	const char *format;
	size_t size;

	format = perfpersist_event_format(t->event, &size);
	if (!format || !tp_format_parse(format, size, &t->format))
		die("an event has no format");
	t->n_lanes = perfpersist_event_rings(t->event);
	t->lanes = calloc(t->n_lanes, sizeof(*t->lanes));
	if (!t->lanes)
		die("no memory");
	for (size_t i = 0; i < t->n_lanes; i++)
		read_ring(t, i);
}

static inline void done(struct tracepoint *t)
{
	for (size_t i = 0; i < t->n_lanes; i++) {
		free(t->lanes[i].ours.list);
		free(t->lanes[i].perfs.list);
	}
	free(t->lanes);
	perfpersist_snapshot_free(t->snapshot);
	perfpersist_event_free(t->event);
}
