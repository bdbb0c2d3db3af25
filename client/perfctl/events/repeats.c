// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/repeats.h"

#include <linux/perf_event.h>
#include <string.h>

#include "proto/macro.h"

#define APART 1000000 /* ns: programs on one tracepoint run one after the other */
#define RAW_MAX 512   /* of a longer record only the beginning is compared */
#define CPUS_MAX 8192
#define MEMBERS_MAX 64

/* The last occurrence. */
struct told {
	uint64_t time;
	uint64_t members; /* that have told it */
	uint32_t size;
	uint8_t raw[RAW_MAX];
};

static bool is_same_tracepoint(const struct trace_event *a, const struct trace_event *b)
{
	return a->type == PERF_TYPE_TRACEPOINT && b->type == PERF_TYPE_TRACEPOINT &&
	       !strcmp(a->name, b->name);
}

/* The group of event i, with the earlier ones of its tracepoint. */
static void join(struct repeats *r, const struct trace *trace, const bool *wanted, size_t i)
{
	for (size_t k = i; k-- > 0;) {
		if (!wanted[k] || !is_same_tracepoint(trace_event(trace, k), trace_event(trace, i)))
			continue;
		if (!r->group[k])
			r->group[k] = ++r->n_groups;
		r->group[i] = r->group[k];
		r->member[i] = r->member[k] + 1;
		return;
	}
}

int repeats_init(struct repeats *r, const struct trace *trace, const bool *wanted)
{
	size_t n = trace_events(trace);

	r->group = calloc(n + 1, sizeof(*r->group));
	r->member = calloc(n + 1, sizeof(*r->member));
	if (!r->group || !r->member)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (wanted[i])
			join(r, trace, wanted, i);
	return 0;
}

void repeats_done(struct repeats *r)
{
	free(r->group);
	free(r->member);
	free(r->told);
	*r = (struct repeats){};
}

static struct told *told_of(struct repeats *r, uint32_t cpu, uint32_t group)
{
	if (cpu >= r->n_cpus) {
		size_t n = MAX(2 * r->n_cpus, (size_t)cpu + 1);
		struct told *more = reallocarray(r->told, n, r->n_groups * sizeof(*more));

		if (!more)
			return NULL;
		memset(more + r->n_cpus * r->n_groups, 0,
		       (n - r->n_cpus) * r->n_groups * sizeof(*more));
		r->told = more;
		r->n_cpus = n;
	}
	return &r->told[cpu * r->n_groups + group - 1];
}

int repeats_look(struct repeats *r, const struct trace_record *record)
{
	const struct perfpersist_sample *s = &record->sample;
	uint32_t group = r->group[record->event->index], size = MIN(s->raw_size, RAW_MAX);
	uint64_t member;
	struct told *told;

	if (!group || !s->raw || record->cpu >= CPUS_MAX)
		return 0;
	/* Beyond that, events are taken for one, and some of their records count twice. */
	member = UINT64_C(1) << MIN(r->member[record->event->index], MEMBERS_MAX - 1);
	told = told_of(r, record->cpu, group);
	if (!told)
		return -ENOMEM;
	if (told->members && !(told->members & member) && record->time - told->time <= APART &&
	    told->size == size && !memcmp(told->raw, s->raw, size)) {
		told->members |= member;
		return 1;
	}
	told->time = record->time;
	told->members = member;
	told->size = size;
	memcpy(told->raw, s->raw, size);
	return 0;
}
