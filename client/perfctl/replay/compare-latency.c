// SPDX-License-Identifier: LGPL-2.1-or-later
/* What intervals between records count for: the time that all threads of a command spent so, and the
 * longest one. */
#include <string.h>

#include "client/perfctl/replay/compare-records-parts.h"

/* Sleep is what a thread does that has nothing to do: compare-findings.c says which one is odd. Of calls, many of which
 * sleep, only a longer one than ever tells something, and of what makes them regularly. */
static bool classify(const struct compare_records *r, enum latency_kind kind,
		     const struct latency_interval *one, enum compare_class *ret, const char **what)
{
	*what = one->label;
	switch (kind) {
	case LATENCY_OFF_CPU:
		if (one->label[0] == 'R') {
			*what = "";
			*ret = COMPARE_WAITED;
			return !latency_records_have(&r->pairs, LATENCY_WAKEUPS);
		}
		*ret = COMPARE_BLOCKED;
		/* It sleeps, has ended, or is an idle kernel thread. */
		return !strchr("SXZI", one->label[0]);
	case LATENCY_WAKEUPS:
		*what = "";
		*ret = COMPARE_WAITED;
		return true;
	case LATENCY_SYSCALLS:
		*ret = COMPARE_CALLS_WORST;
		return true;
	case LATENCY_BLOCK:
		*ret = COMPARE_REQUESTS;
		return true;
	default:
		*ret = COMPARE_HANDLERS;
		return true;
	}
}

static int count(struct compare_records *r, enum compare_class class, uint32_t what, uint32_t comm,
		 uint64_t complete, const struct latency_interval *one)
{
	struct compare_item *item;

	if (compare_find(r->c, class, what, comm, complete, &item) < 0)
		return -ENOMEM;
	if (class == COMPARE_REQUESTS)
		return compare_cover(r->c, item, one->begin, one->end);
	return compare_span(r->c, item, one->begin, one->end);
}

static int count_both(struct compare_records *r, enum compare_class class, uint32_t what,
		      uint32_t comm, uint64_t complete, const struct latency_interval *one)
{
	int failed = count(r, class, what, comm, complete, one);

	if (failed < 0 || compare_kind(class)->is_longest)
		return failed;
	return count(r, class + 1, what, comm, complete, one); /* …_WORST */
}

static int take_interval(void *to, enum latency_kind kind, const struct latency_interval *one)
{
	struct compare_records *r = to;
	const struct compare_grid *g = compare_grid_of(r->c);
	uint64_t complete = r->pairs.histories[kind].from;
	uint32_t name, comm = COMPARE_NO_NAME;
	enum compare_class class;
	const char *what;
	int failed = 0;

	/* For these it is as likely that the record of their end is missing. */
	if (one->is_open && (kind == LATENCY_IRQ || kind == LATENCY_BLOCK))
		return 0;
	if (!classify(r, kind, one, &class, &what))
		return 0;
	/* A call that is longer than the moment tells of the time before. */
	if (compare_kind(class)->is_regular && one->end - one->begin > g->until - g->since)
		return 0;
	if (class != COMPARE_HANDLERS)
		failed = compare_command(r, kind == LATENCY_BLOCK ? UINT32_MAX : one->pid,
					 one->who.tid, *one->who.comm ? one->who.comm : "?", &comm);
	failed = failed ?: compare_name(r->c, what, &name);
	if (failed)
		return MIN(failed, 0);
	return count_both(r, class, name, comm, complete, one);
}

static bool wants(const void *arg, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	const struct selection *s = arg;

	if (cpu != UINT32_MAX && s->cpus && (cpu >= s->n_cpus || !s->cpus[cpu]))
		return false;
	return selection_wants_whose(s, pid, tid);
}

/* Where switches and wakeups, on which they stand, are complete. */
static uint64_t begin_of_findings(const struct compare_records *r)
{
	const struct compare_grid *g = compare_grid_of(r->c);
	uint64_t begin = MAX(r->pairs.histories[LATENCY_OFF_CPU].from,
			     r->pairs.histories[LATENCY_WAKEUPS].from);

	return MIN(MAX(begin, compare_begin(g)), g->since);
}

int compare_latency_begin(struct compare_records *r)
{
	const struct compare_grid *g = compare_grid_of(r->c);
	struct latency_options options = {
		.wants = wants, .arg = r->chosen, .take = take_interval, .to = r
	};

	if (latency_records_open(r->in, &r->pairs) < 0)
		return -ENOMEM;
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (latency_records_have(&r->pairs, kind))
			options.kinds |= UINT32_C(1) << kind;
	if (!selection_has_ids(r->chosen) && !r->chosen->cpus) {
		if (compare_findings_new(begin_of_findings(r), g->since, g->until, &r->findings) <
		    0)
			return -ENOMEM;
		options.watcher = &r->findings->watcher;
		r->pairs.findings = r->findings->of[0];
	}
	return latency_records_start(&r->pairs, compare_begin(g), r->chosen, &options, &r->latency);
}
