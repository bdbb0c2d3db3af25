// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events of a file, and the event of a record, by the id in the record. */
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/trace/trace-internal.h"

#define ATTR_SIZE_MIN 64 /* PERF_ATTR_SIZE_VER0 */

int events_add(struct trace *t, const void *attr, size_t n)
{
	struct perf_event_attr a = { 0 };
	struct event *e;

	if (n < ATTR_SIZE_MIN)
		return -EBADMSG;
	memcpy(&a, attr, MIN(n, sizeof(a)));
	if (!GROW(t->events, t->n_events))
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->pub = (struct trace_event){
		.index = (uint32_t)t->n_events,
		.format_index = (uint32_t)t->n_events,
		.sample_type = a.sample_type,
		.type = a.type,
		.config = a.config,
		.period = a.sample_period,
		.freq = a.freq,
	};
	e->read_format = a.read_format;
	e->sample_regs_user = a.sample_regs_user;
	e->sample_id_all = a.sample_id_all;
	if (!t->n_events) /* perf gives all of them the same */
		t->info.clock = a.use_clockid ? a.clockid : -1;
	t->events[t->n_events++] = e;
	t->events_checked = false;
	return 0;
}

int events_add_id(struct trace *t, uint64_t id)
{
	return keytable_set(&t->by_id, id, (uint32_t)t->n_events - 1);
}

/* The first name counts. */
void events_name(struct trace *t, size_t i, const char *name)
{
	if (i < t->n_events && *name && !t->events[i]->pub.name)
		t->events[i]->pub.name = name;
}

/* Begins the history of n events from i on. */
static int add_history(struct trace *t, size_t i, size_t n, const struct perf_file_history *h)
{
	if (!GROW(t->histories, t->n_histories))
		return -ENOMEM;
	t->histories[t->n_histories++] = (struct history_of_events){
		.first = (uint32_t)i,
		.all = {
			.known = true,
			.to = h->to,
			.missed = h->missed,
			.limited = h->limited,
			.missed_at_least = h->flags & PERF_FILE_HISTORY_AT_LEAST,
		},
	};
	for (size_t k = i; k < i + n; k++)
		t->events[k]->history = (uint32_t)t->n_histories;
	return 0;
}

/* A record of each CPU, for the same events. An event has one history, so that a file cannot make us
 * look at all its events again and again. */
int events_history(struct trace *t, size_t i, const uint8_t *record, size_t size)
{
	struct history_of_events *of;
	struct perf_file_history h;

	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	if (!h.n_events || h.n_events > t->n_events - i)
		return -EBADMSG;
	for (size_t k = i; !t->events[i]->history && k < i + h.n_events; k++)
		if (t->events[k]->history)
			return -EBADMSG;
	if (!t->events[i]->history && add_history(t, i, h.n_events, &h) < 0)
		return -ENOMEM;
	of = &t->histories[t->events[i]->history - 1];
	if (of->first != i)
		return -EBADMSG;
	if (!GROW(of->cpus, of->all.n_cpus))
		return -ENOMEM;
	of->cpus[of->all.n_cpus++] = (struct trace_history_cpu){ h.cpu, h.from };
	of->all.from = MAX(of->all.from, h.from);
	of->all.to = MIN(of->all.to, h.to);
	return 0;
}

struct trace_history trace_history(const struct trace *t, size_t event)
{
	uint32_t i = event < t->n_events ? t->events[event]->history : 0;
	struct trace_history h = {};

	if (event < t->n_events)
		h.lost = t->events[event]->lost;
	if (i) {
		h = t->histories[i - 1].all;
		h.cpus = t->histories[i - 1].cpus;
	}
	return h;
}

size_t trace_history_events(const struct trace *t, size_t event)
{
	size_t end = event + 1;

	while (end < t->n_events && t->events[event]->history &&
	       t->events[end]->history == t->events[event]->history)
		end++;
	return end - event;
}

static void join_history(struct trace_history *all, const struct trace_history *h)
{
	all->from = MAX(all->from, h->from);
	all->to = MIN(all->to, h->to);
	all->lost += h->lost;
	all->missed += h->missed;
	all->limited += h->limited;
	all->missed_at_least |= h->missed_at_least;
}

struct trace_history trace_histories(const struct trace *t, const bool *events)
{
	struct trace_history all = { .to = UINT64_MAX };
	uint32_t last = 0;
	bool any = false, unknown = false;

	for (size_t i = 0; i < t->n_events; i++) {
		struct trace_history h = trace_history(t, i);

		if (!events[i])
			continue;
		any = true;
		unknown |= !h.known;
		/* Events of one history follow each other. */
		if (!h.known || t->events[i]->history != last)
			join_history(&all, &h);
		last = t->events[i]->history;
	}
	if (!any || unknown)
		return (struct trace_history){ .lost = all.lost };
	all.known = true;
	return all;
}

void events_free(struct trace *t)
{
	for (size_t i = 0; i < t->n_histories; i++)
		free(t->histories[i].cpus);
	free(t->histories);
	for (size_t i = 0; i < t->n_events; i++)
		free(t->events[i]);
	free(t->events);
	keytable_done(&t->by_id);
}

/* ── A record's event ──────────────────────────────────────────────────────────────────────── */

/* Offset of the id in all records but samples, from the end; -1: none. */
static int id_place_back(const struct event *e)
{
	if (!e->sample_id_all || !(e->pub.sample_type & PERF_SAMPLE_ID))
		return -1;
	return (int)pp_sample_id_size(e->pub.sample_type & PP_SAMPLE_ID_FROM_ID);
}

int events_check(struct trace *t)
{
	if (t->events_checked)
		return 0;
	if (t->n_events == 0)
		return trace_damaged("there is no event in it that its records could be of");
	t->identifier = true;
	for (size_t i = 0; i < t->n_events; i++)
		if (!(t->events[i]->pub.sample_type & PERF_SAMPLE_IDENTIFIER))
			t->identifier = false;
	t->id_place = pp_sample_id_place(t->events[0]->pub.sample_type);
	t->id_place_back = id_place_back(t->events[0]);
	for (size_t i = 1; i < t->n_events && !t->identifier; i++)
		if (t->id_place < 0 ||
		    pp_sample_id_place(t->events[i]->pub.sample_type) != t->id_place ||
		    id_place_back(t->events[i]) != t->id_place_back)
			return trace_damaged("its %zu events have no ids by which their records "
					     "could be told apart",
					     t->n_events);
	t->events_checked = true;
	return 0;
}

static const struct event *by_id(const struct trace *t, const uint8_t *place)
{
	uint64_t id;
	int64_t i;

	memcpy(&id, place, sizeof(id));
	i = keytable_get(&t->by_id, id);
	return i < 0 ? NULL : t->events[i];
}

size_t events_id_end(const struct trace *t)
{
	return (t->identifier ? sizeof(struct perf_event_header) : (size_t)t->id_place) + 8;
}

static const struct event *of_sample(const struct trace *t, const uint8_t *record, size_t size)
{
	size_t end = events_id_end(t);

	if (t->n_events == 1)
		return t->events[0];
	return end > size ? NULL : by_id(t, record + end - 8);
}

/* perf's own records have no id, and the fields of the first event. */
const struct event *events_of(const struct trace *t, const uint8_t *record, size_t size,
			      uint32_t type)
{
	const struct event *e = t->events[0];
	size_t back = t->identifier ? 8 : (size_t)t->id_place_back;

	if (type == PERF_RECORD_SAMPLE)
		return of_sample(t, record, size);
	if (t->n_events == 1 || !e->sample_id_all || (!t->identifier && t->id_place_back < 0))
		return e;
	if (sizeof(struct perf_event_header) + back <= size) {
		const struct event *found = by_id(t, record + size - back);

		if (found)
			e = found;
	}
	return e;
}

/* ── Names ──────────────────────────────────────────────────────────────────────────────── */

static const char *software_name(uint64_t config)
{
	static const char *const names[] = {
		[PERF_COUNT_SW_CPU_CLOCK] = "cpu-clock",
		[PERF_COUNT_SW_TASK_CLOCK] = "task-clock",
		[PERF_COUNT_SW_PAGE_FAULTS] = "page-faults",
		[PERF_COUNT_SW_CONTEXT_SWITCHES] = "context-switches",
		[PERF_COUNT_SW_CPU_MIGRATIONS] = "cpu-migrations",
		[PERF_COUNT_SW_PAGE_FAULTS_MIN] = "minor-faults",
		[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = "major-faults",
		[PERF_COUNT_SW_ALIGNMENT_FAULTS] = "alignment-faults",
		[PERF_COUNT_SW_EMULATION_FAULTS] = "emulation-faults",
		[PERF_COUNT_SW_DUMMY] = "dummy",
		[PERF_COUNT_SW_BPF_OUTPUT] = "bpf-output",
	};

	return config < ARRAY_SIZE(names) ? names[config] : NULL;
}

static const char *hardware_name(uint64_t config)
{
	static const char *const names[] = {
		[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
		[PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
		[PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
		[PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
		[PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses",
		[PERF_COUNT_HW_BUS_CYCLES] = "bus-cycles",
		[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = "stalled-cycles-frontend",
		[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = "stalled-cycles-backend",
		[PERF_COUNT_HW_REF_CPU_CYCLES] = "ref-cycles",
	};

	return config < ARRAY_SIZE(names) ? names[config] : NULL;
}

int events_finish(struct trace *t)
{
	for (size_t i = 0; i < t->n_events; i++)
		if (t->events[i]->history)
			t->histories[t->events[i]->history - 1].all.lost += t->events[i]->lost;
	for (size_t i = 0; i < t->n_events; i++) {
		struct trace_event *e = &t->events[i]->pub;
		char *name;
		int r;

		if (!e->name)
			e->name = t->events[i]->point;
		if (!e->name && e->type == PERF_TYPE_SOFTWARE)
			e->name = software_name(e->config);
		if (!e->name && e->type == PERF_TYPE_HARDWARE)
			e->name = hardware_name(e->config);
		if (e->name)
			continue;
		if (asprintf(&name,
			     e->type == PERF_TYPE_TRACEPOINT ? "tracepoint:%llu" : "raw 0x%llx",
			     (unsigned long long)e->config) < 0)
			return -ENOMEM;
		r = trace_keep(t, name);
		if (r < 0)
			return r;
		e->name = name;
	}
	return 0;
}
