// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes the records of a trace in turn and counts: by event, and with the other parts by call chain
 * and by process. */
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/pictures/aggregate-parts.h"

void *grow(void *items, size_t n, size_t *cap, size_t size)
{
	size_t more;
	void *bigger;

	if (n < *cap)
		return items;
	more = *cap ? *cap * 2 : 64;
	bigger = reallocarray(items, more, size);
	if (bigger)
		*cap = more;
	return bigger;
}

int aggregate_new(struct trace *t, struct symbols *symbols, const struct aggregate_options *opts,
		  struct aggregate **ret)
{
	struct aggregate_parts *p = calloc(1, sizeof(*p));
	struct aggregate *a = &p->a;

	if (!p)
		return -ENOMEM;
	p->trace = t;
	p->symbols = symbols;
	p->threads_alone = opts && opts->threads_alone;
	a->has_about = opts && opts->about;
	p->by_pid = opts && opts->by_pid;
	p->by_tid = opts && opts->by_tid;
	p->max_stack = opts && opts->max_stack ? MIN(opts->max_stack, CHAIN_MAX) : CHAIN_MAX;
	a->n_events = trace_events(t);
	a->events = calloc(a->n_events + 1, sizeof(*a->events));
	if (!a->events)
		goto no_memory;
	for (size_t i = 0; i < a->n_events; i++) {
		a->events[i].event = trace_event(t, i);
		if (tree_root(p, &a->events[i].root) < 0)
			goto no_memory;
	}
	if (sums_start(p) < 0)
		goto no_memory;
	*ret = a;
	return 0;

no_memory:
	aggregate_free(a);
	return -ENOMEM;
}

void aggregate_free(struct aggregate *a)
{
	struct aggregate_parts *p = (struct aggregate_parts *)a;

	if (!a)
		return;
	sums_done(p);
	tree_done(p);
	for (size_t i = 0; a->events && i < a->n_events; i++)
		cpu_counts_done(&a->events[i].cpus);
	free(a->events);
	free(p);
}

uint64_t sample_period(const struct trace_record *record)
{
	if (record->event->sample_type & PERF_SAMPLE_PERIOD)
		return record->sample.period;
	return record->event->freq || !record->event->period ? 1 : record->event->period;
}

static int count_cpu(struct event_sum *e, uint32_t cpu)
{
	uint64_t *samples = cpu_counts_at(&e->cpus, cpu);

	if (!samples)
		return -ENOMEM;
	++*samples;
	return 0;
}

static void count_time(uint64_t time, uint64_t samples, uint64_t *first, uint64_t *last)
{
	if (!samples || time < *first)
		*first = time;
	if (!samples || time > *last)
		*last = time;
}

static bool is_known(const struct aggregate *a, const struct trace_record *record)
{
	return record->event && record->event->index < a->n_events;
}

/* For its event and its CPU. */
static int count_sample(struct aggregate *a, const struct trace_record *record)
{
	struct event_sum *e = &a->events[record->event->index];

	if (record->cpu >= AGGREGATE_CPUS)
		a->no_cpu++;
	else if (count_cpu(e, record->cpu) < 0)
		return -ENOMEM;
	else
		a->n_cpus = MAX(a->n_cpus, (size_t)record->cpu + 1);
	count_time(record->time, e->weight.samples, &e->first, &e->last);
	count_time(record->time, a->samples, &a->first, &a->last);
	a->samples++;
	if (!strcmp(record->comm, "?"))
		a->nameless++;
	e->weight.samples++;
	e->weight.period += sample_period(record);
	return 0;
}

static int add_sample(struct aggregate_parts *p, const struct trace_record *record,
		      const struct flame_node **ret_leaf)
{
	struct aggregate *a = &p->a;
	struct flame_node *node;

	if (!is_known(a, record)) {
		a->other++;
		*ret_leaf = NULL;
		return 0;
	}
	if (tree_place(p, &a->events[record->event->index], record, &node) < 0 ||
	    sums_add(p, record, true) < 0 || count_sample(a, record) < 0)
		return -ENOMEM;
	node->self.samples++;
	node->self.period += sample_period(record);
	*ret_leaf = node;
	return 0;
}

int aggregate_add(struct aggregate *a, const struct trace_record *record,
		  const struct flame_node **ret_leaf)
{
	const struct flame_node *leaf = NULL;
	int r = 0;

	switch (record->kind) {
	case TRACE_SAMPLE:
		r = add_sample((struct aggregate_parts *)a, record, &leaf);
		break;
	case TRACE_FORK:
	case TRACE_COMM:
		r = sums_lineage((struct aggregate_parts *)a, record);
		break;
	case TRACE_LOST:
		a->lost += record->lost;
		break;
	case TRACE_OTHER:
		a->other++;
		break;
	default:
		break;
	}
	if (r < 0)
		return r;
	if (ret_leaf)
		*ret_leaf = leaf;
	return 0;
}

int aggregate_count(struct aggregate *a, const struct trace_record *record)
{
	if (record->kind == TRACE_SAMPLE && is_known(a, record))
		return count_sample(a, record);
	if (record->kind == TRACE_SAMPLE || record->kind == TRACE_OTHER)
		a->other++;
	else if (record->kind == TRACE_LOST)
		a->lost += record->lost;
	return 0;
}

int aggregate_pass(struct aggregate *a, const struct trace_record *record)
{
	if (record->kind != TRACE_SAMPLE || !is_known(a, record))
		return 0;
	return sums_add((struct aggregate_parts *)a, record, false);
}

void aggregate_finish(struct aggregate *a)
{
	tree_totals(a);
	sums_sort(a);
}
