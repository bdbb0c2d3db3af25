// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the records of a trace in turn and counts: by event, and with the help of the other parts
 * by call chain and by process.
 */
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

uint64_t sample_period(const struct trace_record *r)
{
	if (r->event->sample_type & PERF_SAMPLE_PERIOD)
		return r->sample.period;
	return r->event->freq || !r->event->period ? 1 : r->event->period;
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

static int add_sample(struct aggregate_parts *p, const struct trace_record *r,
		      const struct flame_node **ret_leaf)
{
	struct aggregate *a = &p->a;
	struct event_sum *e;
	struct flame_node *node;
	uint64_t period;

	if (!r->event || r->event->index >= a->n_events) {
		a->other++;
		*ret_leaf = NULL;
		return 0;
	}
	e = &a->events[r->event->index];
	if (tree_place(p, e, r, &node) < 0 || sums_add(p, r, true) < 0)
		return -ENOMEM;
	if (r->cpu >= AGGREGATE_CPUS)
		a->no_cpu++;
	else if (count_cpu(e, r->cpu) < 0)
		return -ENOMEM;
	else
		a->n_cpus = MAX(a->n_cpus, (size_t)r->cpu + 1);

	period = sample_period(r);
	count_time(r->time, e->weight.samples, &e->first, &e->last);
	count_time(r->time, a->samples, &a->first, &a->last);
	a->samples++;
	if (!strcmp(r->comm, "?"))
		a->nameless++;
	e->weight.samples++;
	e->weight.period += period;
	node->self.samples++;
	node->self.period += period;
	*ret_leaf = node;
	return 0;
}

int aggregate_add(struct aggregate *a, const struct trace_record *r,
		  const struct flame_node **ret_leaf)
{
	const struct flame_node *leaf = NULL;
	int error = 0;

	switch (r->kind) {
	case TRACE_SAMPLE:
		error = add_sample((struct aggregate_parts *)a, r, &leaf);
		break;
	case TRACE_LOST:
		a->lost += r->lost;
		break;
	case TRACE_OTHER:
		a->other++;
		break;
	default:
		break;
	}
	if (error < 0)
		return error;
	if (ret_leaf)
		*ret_leaf = leaf;
	return 0;
}

int aggregate_pass(struct aggregate *a, const struct trace_record *r)
{
	if (r->kind != TRACE_SAMPLE || !r->event || r->event->index >= a->n_events)
		return 0;
	return sums_add((struct aggregate_parts *)a, r, false);
}

void aggregate_finish(struct aggregate *a)
{
	tree_totals(a);
	sums_sort(a);
}
