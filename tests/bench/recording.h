/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The benchmarks' events, in an instance of their own, with proof of what they recorded on the CPU
 * that makes the calls.
 */
#pragma once

#include <inttypes.h>

#include "tests/bench/measure.h"

struct recording {
	const char *name;
	int cpu;
	struct perfpersist_event *event;
	struct perfpersist_ring_stat before;
};

static inline struct perfpersist_ring_stat recording_stat(const struct recording *r)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	for (size_t ring = 0; ring < perfpersist_event_rings(r->event); ring++) {
		if (perfpersist_ring_cpu(r->event, ring) != r->cpu)
			continue;
		if (perfpersist_ring_stat(r->event, ring, &stat) < 0)
			die("%s", perfpersist_error(NULL));
		return stat;
	}
	die("the event %s has no ring of CPU %d", r->name, r->cpu);
}

static inline void recording_begin(struct recording *r, struct perfpersist *p, const char *name,
				   int cpu, enum perfpersist_recorder recorder,
				   const struct perfpersist_create_options *opts)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	if (perfpersist_create(p, NAMESPACE, name, opts, &info) < 0)
		die("%s", perfpersist_error(p));
	if (info.recorder != recorder)
		die("%s is recorded by recorder %u, not by %u", info.event, info.recorder,
		    recorder);
	*r = (struct recording){ .name = name, .cpu = cpu, .event = open_event(p, name) };
	r->before = recording_stat(r);
}

/* Checks that the event counted at least `events`, and that its rate limit dropped at least
 * kept_out. */
static inline void recording_check(const struct recording *r, uint64_t events, uint64_t limited)
{
	struct perfpersist_ring_stat now_ = recording_stat(r);
	uint64_t kept_out = now_.limited - r->before.limited;
	uint64_t all = now_.records - r->before.records + kept_out;

	/* A recorder is shut out for moments when another program runs on this CPU. */
	if (all < events - events / 100)
		die("of %" PRIu64 " events, %s counted only %" PRIu64, events, r->name, all);
	if (kept_out < limited)
		die("the limit of %s kept out only %" PRIu64, r->name, kept_out);
}

/* Whether calls still become records: if they do, the event's program still runs. */
static inline void wait_for_silence(const struct recording *r)
{
	struct perfpersist_ring_stat before, after = recording_stat(r);

	do {
		before = after;
		call();
		sched_yield();
		after = recording_stat(r);
	} while (after.records != before.records || after.limited != before.limited);
}

/* Deleting hides an event at once and ends its program later. */
static inline void recording_end(struct recording *r, size_t n, struct perfpersist *p)
{
	const struct perfpersist_change_options all = {
		.sz = sizeof(all),
		.what = PERFPERSIST_CHANGE_FILTER,
	};
	struct perfpersist_info info = { .sz = sizeof(info) };

	for (size_t i = 0; i < n; i++) {
		if (perfpersist_show(p, NAMESPACE, r[i].name, &info) < 0)
			die("%s", perfpersist_error(p));
		/* A filter that passes nothing would look as if the program had ended. */
		if (*info.filter && perfpersist_change(p, NAMESPACE, r[i].name, &all, NULL) < 0)
			die("%s", perfpersist_error(p));
		if (perfpersist_delete(p, NAMESPACE, r[i].name, NULL) < 0)
			die("%s", perfpersist_error(p));
	}
	for (size_t i = 0; i < n; i++) {
		wait_for_silence(&r[i]);
		perfpersist_event_free(r[i].event);
	}
}
