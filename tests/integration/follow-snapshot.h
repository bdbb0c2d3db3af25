/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes snapshots of rings while a worker on each CPU writes into them at full speed: no snapshot
 * has a torn, duplicate, missing or misplaced record, and each holds nearly everything in the
 * rings. A part of follow-check.c.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfpersist.h"
#include "tests/integration/exact-worker.h"

#define ARGS_OFFSET 16 /* of sys_enter's arguments in its payload */
#define CPUS_MAX 256
#define RECORD_SIZE 64 /* minimum */

/* The number of the call in this record; dies if the record is torn. */
static inline int64_t call_of(const struct perfpersist_sample *s)
{
	int64_t args[6];

	if (s->raw_size < ARGS_OFFSET + sizeof(args))
		die("a record of %zu bytes", s->raw_size);
	memcpy(args, (const char *)s->raw + ARGS_OFFSET, sizeof(args));
	if (args[1] != MARK || args[0] != ~args[2] || (uint64_t)args[4] != args[2] * MIX)
		die("CPU %u: a record that is torn, or none of ours", s->cpu);
	return args[2];
}

struct snapshots {
	struct perfpersist_event *e;
	struct perfpersist_snapshot *snapshot;
	uint64_t buffer;
	int64_t newest[CPUS_MAX]; /* newest call of each ring in the last snapshot */
	uint64_t records, gaps;
	double *fill;	   /* of each copy of a ring */
	uint64_t *written; /* records written during the copy, for copies where there were any */
	size_t n, hot;
};

static inline uint64_t snapshots_records(const struct snapshots *s, size_t ring)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	if (perfpersist_ring_stat(s->e, ring, &stat) < 0)
		die("%s", perfpersist_error(NULL));
	return stat.records;
}

/* Newest first: each record has the previous number minus one. */
static inline void snapshots_check_ring(struct snapshots *s, size_t ring, uint64_t written)
{
	int cpu = perfpersist_ring_cpu(s->e, ring), r;
	struct perfpersist_cursor *cursor;
	struct perfpersist_sample sample;
	uint64_t time = UINT64_MAX, bytes = 0, n = 0;
	int64_t last = 0, newest = -1;

	if (perfpersist_cursor_new(s->snapshot, ring, &cursor) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(cursor, &sample)) > 0) {
		int64_t call = call_of(&sample);

		if (sample.time > time)
			die("CPU %d: a record of %" PRIu64 " lies behind one of %" PRIu64, cpu,
			    sample.time, time);
		if (n && call >= last)
			die("CPU %d: call %" PRId64 " lies behind %" PRId64, cpu, call, last);
		if (n++)
			s->gaps += (uint64_t)(last - call - 1);
		else
			newest = call;
		time = sample.time;
		last = call;
		bytes += sample.record_size;
	}
	perfpersist_cursor_free(cursor);
	if (r < 0)
		die("CPU %d: the ring is damaged (%s)", cpu, strerror(-r));
	if (n && newest < s->newest[ring])
		die("CPU %d: the newest is call %" PRId64 ", and it was %" PRId64 " before", cpu,
		    newest, s->newest[ring]);
	s->newest[ring] = n ? newest : s->newest[ring];
	s->records += n;
	if (written)
		s->written[s->hot++] = written;
	s->fill[s->n++] = (double)bytes / (double)s->buffer;
}

/* Runs on another CPU each time, so that it copies each ring while its worker runs. */
static inline void snapshots_take(struct snapshots *s, size_t number)
{
	size_t n = perfpersist_event_rings(s->e);
	uint64_t before[CPUS_MAX], after[CPUS_MAX];

	pin(perfpersist_ring_cpu(s->e, number % n));
	for (size_t i = 0; i < n; i++)
		before[i] = snapshots_records(s, i);
	if (perfpersist_snapshot_take(s->snapshot) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t i = 0; i < n; i++)
		after[i] = snapshots_records(s, i);
	for (size_t i = 0; i < n; i++)
		snapshots_check_ring(s, i, after[i] - before[i]);
}

static inline int snapshots_by_fill(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int snapshots_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline void snapshots_judge(struct snapshots *s, size_t taken)
{
	qsort(s->fill, s->n, sizeof(*s->fill), snapshots_by_fill);
	qsort(s->written, s->hot, sizeof(*s->written), snapshots_by_number);
	printf("snapshot: %zu of %zu x %" PRIu64 "K: %" PRIu64 " records, %" PRIu64
	       " missing; filled: 1 %%: %.1f %%, median %.1f %%; %zu of %zu copies raced with "
	       "their writer: median %" PRIu64 " records meanwhile, most %" PRIu64 "\n",
	       taken, s->n / taken, s->buffer / 1024, s->records, s->gaps,
	       100 * s->fill[s->n / 100], 100 * s->fill[s->n / 2], s->hot, s->n,
	       s->hot ? s->written[s->hot / 2] : 0, s->hot ? s->written[s->hot - 1] : 0);
	if (s->fill[s->n / 2] < 0.9 || s->fill[s->n / 100] < 0.5)
		die("the snapshots lack too many of the rings' records");
}

/* Whether enough copies raced with their writers to prove something. */
static inline bool snapshots_raced(const struct snapshots *s, size_t taken)
{
	return s->hot >= taken * perfpersist_event_rings(s->e) / 50;
}

/* Takes `taken` snapshots of an event into which workers write; more if the writers seldom ran
 * meanwhile, as on a busy machine. Returns how many calls were absent within them. */
static inline uint64_t snapshots_check(struct perfpersist_event *e, uint64_t buffer, size_t taken)
{
	size_t rings = perfpersist_event_rings(e), most = 50 * taken, i = 0;
	struct snapshots s = { .e = e, .buffer = buffer };

	s.fill = calloc(most * rings, sizeof(*s.fill));
	s.written = calloc(most * rings, sizeof(*s.written));
	if (!s.fill || !s.written)
		die("out of memory");
	if (perfpersist_snapshot_new(e, &s.snapshot) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t ring = 0; ring < rings; ring++) /* each ring is full */
		while (snapshots_records(&s, ring) < 2 * buffer / RECORD_SIZE)
			sched_yield();
	while (i < taken || (i < most && !snapshots_raced(&s, taken)))
		snapshots_take(&s, i++);
	if (!snapshots_raced(&s, taken))
		die("only %zu of %zu copies were made while their ring was written", s.hot, s.n);
	snapshots_judge(&s, i);
	perfpersist_snapshot_free(s.snapshot);
	free(s.fill);
	free(s.written);
	return s.gaps;
}
