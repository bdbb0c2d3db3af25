// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/trace/repeats.h"

#include <linux/perf_event.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/siphash.h"

#define APART 1000000 /* ns: programs on one tracepoint run one after the other */
#define RAW_MAX 128   /* of a longer record only the beginning is compared */
#define MEMBERS_MAX 64

/* The last occurrence. */
struct told {
	uint64_t time;
	uint64_t members; /* that have told it */
	uint32_t size;
	uint8_t raw[RAW_MAX];
};

/* The group of event i, with the one before of its tracepoint. Names that have the same hash are no group. */
static int join(struct repeats *r, const struct trace *trace, struct keytable *by_name, size_t i)
{
	const struct trace_event *e = trace_event(trace, i);
	uint64_t key = siphash(e->name, strlen(e->name));
	int64_t before = keytable_get(by_name, key);

	if (before >= 0 && !strcmp(trace_event(trace, (size_t)before)->name, e->name)) {
		r->group[before] = r->group[before] ?: (uint32_t)before + 1;
		r->group[i] = r->group[before];
		r->member[i] = r->member[before] + 1;
	}
	return keytable_set(by_name, key, (uint32_t)i);
}

int repeats_init(struct repeats *r, const struct trace *trace, const bool *wanted)
{
	size_t n = trace_events(trace);
	struct keytable by_name = {};
	int failed = 0;

	r->group = calloc(n + 1, sizeof(*r->group));
	r->member = calloc(n + 1, sizeof(*r->member));
	if (!r->group || !r->member)
		return -ENOMEM;
	for (size_t i = 0; failed >= 0 && i < n; i++)
		if (wanted[i] && trace_event(trace, i)->type == PERF_TYPE_TRACEPOINT)
			failed = join(r, trace, &by_name, i);
	keytable_done(&by_name);
	return failed;
}

void repeats_done(struct repeats *r)
{
	free(r->group);
	free(r->member);
	free(r->told);
	keytable_done(&r->by_place);
	*r = (struct repeats){};
}

static struct told *told_of(struct repeats *r, uint32_t cpu, uint32_t group)
{
	uint64_t key = (uint64_t)cpu << 32 | group;
	int64_t i = keytable_get(&r->by_place, key);

	if (i >= 0)
		return &r->told[i];
	if (!GROW(r->told, r->n_told) || keytable_set(&r->by_place, key, (uint32_t)r->n_told) < 0)
		return NULL;
	r->told[r->n_told] = (struct told){};
	return &r->told[r->n_told++];
}

int repeats_look(struct repeats *r, const struct trace_record *record)
{
	const struct perfpersist_sample *s = &record->sample;
	uint32_t group = r->group[record->event->index], size = MIN(s->raw_size, RAW_MAX);
	uint64_t member;
	struct told *told;

	if (!group || !s->raw)
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
