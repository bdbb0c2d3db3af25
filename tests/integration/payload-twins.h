/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Twins: two events on one tracepoint, one with a tp_btf recorder, one with a generic one. Each
 * record of one has a counterpart in the other, by the same thread, with the same payload to the
 * last byte. A record without a counterpart must be in the other twin's missed count, with one
 * exception.
 *
 * A generic recorder runs in perf's handler of the tracepoint, which first takes perf's recursion
 * context (perf_trace_buf_alloc). If that is held already, as perf_pending_irq() holds it while it
 * wakes a task that polls a perf descriptor, the handler returns before it calls any recorder, and
 * the kernel does not count the miss. tp_btf programs do not need that context. So the test accepts
 * and counts a record that only tp_btf has, if perf was recording on that CPU at that time and does
 * not have it either:
 *
 *  - each of perf's records has one of the generic recorder (compare_lane): what the generic one
 *    lost by itself, perf has, and that is an error there;
 *  - between perf's records before and behind this one, of all tracepoints of that CPU, no generic
 *    recorder has a record that perf lacks: perf was not off the CPU, and lost nothing.
 */
#pragma once

#include <inttypes.h>

#include "tests/integration/payload-lanes.h"

#define TWINS_EDGE 16 /* records at the old end of a ring, whose counterpart may be overwritten */
#define TWINS_NEAR 64 /* how many records before and after are candidates for a counterpart */
#define TWINS_START 10000000UL /* ns: less than the time from perf's start to its first record */
#define TWINS_SHOWN 4	       /* records of each tracepoint to print in full */

/* For one CPU and all tracepoints: the times of perf's records, and of generic records that perf
 * lacks. */
struct times {
	uint64_t *list;
	size_t n, room;
};

struct witness {
	int cpu;
	struct times perfs, holes;
};

/* Records without a counterpart. */
struct alone {
	const char *whose;
	bool provable;	 /* witnesses can clear the other recorder */
	uint64_t missed; /* the other recorder's own count */
	size_t n, unproved;
};

/* ── when perf was there ────────────────────────────────────────────────────────────────── */

static inline void times_add(struct times *t, uint64_t time)
{
	if (t->n == t->room) {
		t->room = t->room ? t->room * 2 : 1024;
		t->list = reallocarray(t->list, t->room, sizeof(*t->list));
		if (!t->list)
			die("no memory");
	}
	t->list[t->n++] = time;
}

static inline int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline void times_sort(struct times *t)
{
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_number);
}

/* How many are before that time. */
static inline size_t times_before(const struct times *t, uint64_t time)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->list[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Runs after all lanes have been compared with perf's. */
static inline struct witness witness_of(const struct tracepoint *list, size_t n, int cpu)
{
	struct witness w = { .cpu = cpu };

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < list[i].n_lanes; j++) {
			const struct lane *lane = &list[i].lanes[j];

			if (lane->cpu != cpu)
				continue;
			for (size_t k = 0; k < lane->perfs.n; k++)
				times_add(&w.perfs, lane->perfs.list[k].time);
			if (list[i].info.recorder != PERFPERSIST_RECORDER_GENERIC)
				continue;
			for (size_t k = 0; k < lane->ours.n; k++)
				if (!lane->ours.list[k].taken)
					times_add(&w.holes, lane->ours.list[k].time);
		}
	times_sort(&w.perfs);
	times_sort(&w.holes);
	return w;
}

static inline void witness_done(struct witness *w)
{
	free(w->perfs.list);
	free(w->holes.list);
}

/* The time since which both twins exist: they are created before perf starts, which takes
 * longer. */
static inline uint64_t witness_since(const struct witness *w)
{
	return w->perfs.n ? w->perfs.list[0] - MIN(w->perfs.list[0], TWINS_START) : UINT64_MAX;
}

/* Whether perf recorded on that CPU before and after that time, without a gap in between. */
static inline bool witness_was_there(const struct witness *w, uint64_t time)
{
	size_t behind = times_before(&w->perfs, time);

	if (behind == 0 || behind == w->perfs.n)
		return false;
	return times_before(&w->holes, w->perfs.list[behind - 1]) ==
	       times_before(&w->holes, w->perfs.list[behind]);
}

/* ── pairs ──────────────────────────────────────────────────────────────────────────────── */

/* The time since which the lane is complete, ignoring its `less` oldest records. */
static inline uint64_t twins_since(const struct lane *lane, size_t less)
{
	if (lane->complete)
		return 0;
	return lane->ours.n > less ? lane->ours.list[less].time : UINT64_MAX;
}

static inline bool twins_equal_part(const struct record *a, const struct record *b, size_t from,
				    size_t to)
{
	return !memcmp((const char *)a->raw + from, (const char *)b->raw + from, to - from);
}

static inline bool twins_equal(const struct tp_format *format, const struct record *a,
			       const struct record *b)
{
	if (a->tid != b->tid || a->raw_size != b->raw_size)
		return false;
	for (size_t i = 0; i < format->n; i++) {
		const struct tp_format_field *f = &format->fields[i];

		if (f->offset + f->size <= a->raw_size && tp_format_is_reaped(f, a->raw, b->raw))
			return twins_equal_part(a, b, 0, f->offset) &&
			       twins_equal_part(a, b, f->offset + f->size, a->raw_size);
	}
	return twins_equal_part(a, b, 0, a->raw_size);
}

static inline uint64_t twins_distance(const struct record *a, const struct record *b)
{
	return a->time < b->time ? b->time - a->time : a->time - b->time;
}

/* The nearest in time of the records around index `at` that equal r and have no counterpart yet. */
static inline struct record *twins_counterpart(const struct tp_format *format, struct records *of,
					       size_t at, uint64_t since, const struct record *r)
{
	struct record *nearest = NULL;

	for (size_t i = at > TWINS_NEAR ? at - TWINS_NEAR : 0; i < MIN(at + TWINS_NEAR, of->n);
	     i++) {
		struct record *other = &of->list[i];

		if (other->time >= since && !other->paired && twins_equal(format, other, r) &&
		    (!nearest || twins_distance(other, r) < twins_distance(nearest, r)))
			nearest = other;
	}
	return nearest;
}

/* Begins at the time that both twins cover. An older record has no counterpart, or a lost one: it
 * must not take another record's, which would then take the next one's, and so on. */
static inline size_t twins_pair(const struct tp_format *format, struct records *hot,
				struct records *plain, uint64_t since)
{
	size_t at = 0, n = 0;

	for (size_t i = 0; i < plain->n; i++) {
		struct record *r = &plain->list[i], *other;

		if (r->time < since)
			continue;
		while (at < hot->n && hot->list[at].time < r->time)
			at++;
		other = twins_counterpart(format, hot, at, since, r);
		if (!other)
			continue;
		other->paired = r->paired = true;
		n++;
	}
	return n;
}

/* ── those without counterpart ──────────────────────────────────────────────────────────── */

static inline void twins_show(const char *whose, const struct record *r)
{
	fprintf(stderr, "  only %-8s time %" PRIu64 " thread %u, %u bytes:", whose, r->time, r->tid,
		r->raw_size);
	for (uint32_t i = 0; i < r->raw_size && i < 128; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", ((const uint8_t *)r->raw)[i]);
	fprintf(stderr, "\n");
}

/* Adds the records in the time that both twins and perf cover. */
static inline void twins_alone(const struct lane *lane, const struct lane *other,
			       const struct witness *w, struct alone *a)
{
	uint64_t since = MAX(twins_since(lane, TWINS_EDGE), twins_since(other, TWINS_EDGE));

	if (w->perfs.n == 0)
		return;
	since = MAX(since, w->perfs.list[0]);
	for (size_t i = 0; i < lane->ours.n; i++) {
		const struct record *r = &lane->ours.list[i];

		if (r->paired || r->time < since || r->time > w->perfs.list[w->perfs.n - 1])
			continue;
		a->n++;
		if (a->provable && witness_was_there(w, r->time))
			continue;
		if (a->unproved++ >= a->missed && a->unproved <= a->missed + TWINS_SHOWN)
			twins_show(a->whose, r);
	}
}

/* ── one tracepoint ─────────────────────────────────────────────────────────────────────── */

/* Prints the result; returns whether it has no errors. The kernel may not know what the generic
 * recorder missed. */
static inline bool twins_judge(struct tracepoint *hot, struct tracepoint *plain,
			       const struct witness *witnesses)
{
	struct alone of_hot = { .whose = "tp_btf", .provable = true };
	struct alone of_plain = { .whose = "generic", .missed = hot->info.missed };
	size_t equal = 0, shut_out;
	bool good;

	of_hot.missed = plain->info.missed_unknown ? SIZE_MAX / 2 : plain->info.missed;
	if (hot->n_lanes != plain->n_lanes)
		die("twins are on different CPUs");
	for (size_t i = 0; i < hot->n_lanes; i++) {
		struct lane *h = &hot->lanes[i], *p = &plain->lanes[i];
		uint64_t since = MAX(twins_since(h, 0), twins_since(p, 0));

		if (h->cpu != p->cpu || h->cpu != witnesses[i].cpu)
			die("twins are on different CPUs");
		equal += twins_pair(&hot->format, &h->ours, &p->ours,
				    MAX(since, witness_since(&witnesses[i])));
		twins_alone(h, p, &witnesses[i], &of_hot);
		twins_alone(p, h, &witnesses[i], &of_plain);
	}
	shut_out = of_hot.n > of_hot.missed ? of_hot.n - of_hot.missed : 0;
	good = of_hot.unproved <= of_hot.missed && of_plain.unproved <= of_plain.missed;
	printf("%s twins equal=%zu hot-only=%zu plain-only=%zu hot-missed=%" PRIu64
	       " plain-missed=%" PRIu64 " shut-out=%zu unproved=%zu%s\n",
	       hot->info.event, equal, of_hot.n, of_plain.n, of_plain.missed, plain->info.missed,
	       shut_out, of_hot.unproved, good ? "" : " DIFFERENT");
	return good;
}
