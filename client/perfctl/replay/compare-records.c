// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads all records once: each counts for its event and its command, a switch for the time of the
 * command that leaves the CPU. */
#include "client/perfctl/replay/compare-records.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/replay/compare-records-parts.h"

/* ── Events ── */

static const struct {
	const char *event;
	int meaning;
	const char *fields[4];
} meanings[] = {
	{ "sched:sched_switch",
	  SOURCE_SWITCH,
	  { "prev_pid", "next_pid", "prev_comm", "next_comm" } },
	{ "signal:signal_generate", SOURCE_SIGNAL, { "sig", "pid", "comm", "result" } },
	{ "oom:mark_victim", SOURCE_VICTIM, { "pid" } },
};

static int open_fields(struct compare_records *r, struct compare_source *s,
		       const char *const *names)
{
	int failed = decoders_get(&r->in->decoders, s->event, &s->decoder);

	if (failed < 0 || !s->decoder)
		return failed;
	for (size_t i = 0; i < ARRAY_SIZE(s->fields) && names[i]; i++) {
		s->fields[i] = decoder_field(s->decoder, names[i]);
		if (!s->fields[i])
			s->meaning = SOURCE_OTHER; /* as on another kernel */
	}
	return 0;
}

static bool is_clock(const struct trace_event *e)
{
	return !e->format && e->type == PERF_TYPE_SOFTWARE &&
	       (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* The CPU time that a sample stands for, by the event's attributes. */
static uint64_t time_per_sample(const struct trace_event *e)
{
	bool is_cycles = e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_CPU_CYCLES;

	if (e->format || !e->period)
		return 0;
	if (e->freq)
		return is_clock(e) || is_cycles ? 1000000000 / e->period : 0;
	return is_clock(e) ? e->period : 0;
}

static int open_source(struct compare_records *r, size_t i)
{
	struct compare_source *s = &r->sources[i];

	s->event = trace_event(r->in->trace, i);
	s->per_sample = time_per_sample(s->event);
	s->is_clock = is_clock(s->event);
	s->history = trace_history(r->in->trace, i);
	s->complete = s->history.from;
	if (compare_name(r->c, s->event->name, &s->name) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < ARRAY_SIZE(meanings); k++) {
		if (strcmp(meanings[k].event, s->event->name))
			continue;
		s->meaning = meanings[k].meaning;
		if (open_fields(r, s, meanings[k].fields) < 0)
			return -ENOMEM;
		if (!s->decoder)
			s->meaning = SOURCE_OTHER;
	}
	return 0;
}

int compare_records_new(struct input *in, const struct compare_grid *grid,
			const struct selection *chosen, struct symbols *symbols,
			struct compare_records **ret)
{
	struct compare_records *r = calloc(1, sizeof(*r));
	int failed = -ENOMEM;

	if (!r)
		return -ENOMEM;
	*r = (struct compare_records){ .in = in, .chosen = chosen };
	r->n_sources = trace_events(in->trace);
	r->sources = calloc(r->n_sources + 1, sizeof(*r->sources));
	if (r->sources)
		failed = compare_new(grid, &r->c);
	for (size_t i = 0; i < r->n_sources && failed >= 0; i++)
		failed = open_source(r, i);
	if (failed >= 0)
		failed = aggregate_new(in->trace, symbols, NULL, &r->tree);
	if (failed >= 0)
		failed = compare_latency_begin(r);
	if (failed >= 0)
		*ret = r;
	else
		compare_records_free(r);
	return failed;
}

void compare_records_free(struct compare_records *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->sources && i < r->n_sources; i++) {
		cpu_counts_done(&r->sources[i].before);
		cpu_counts_done(&r->sources[i].now);
	}
	for (size_t i = 0; i < r->n_nodes; i++)
		free(r->nodes[i].series.cells);
	free(r->sources);
	free(r->nodes);
	free(r->running);
	free(r->births);
	free(r->faults);
	keytable_done(&r->faulty);
	keytable_done(&r->pids);
	keytable_done(&r->birth_of);
	keytable_done(&r->parents);
	compare_findings_free(r->findings);
	latency_free(r->latency);
	latency_records_done(&r->pairs);
	aggregate_free(r->tree);
	compare_free(r->c);
	free(r);
}

/* ── Commands ── */

/* "kworker/0:1", "ksoftirqd/1": threads of the kernel that differ in a number do the same. */
static void cut_number(char *comm)
{
	char *slash = strchr(comm, '/');

	if (slash && slash > comm && (isdigit((unsigned char)slash[1]) || slash[1] == 'u'))
		*slash = '\0';
}

/* "java/GC Thread#3" */
static void cut_digits(char *comm)
{
	size_t n = strlen(comm);

	while (n && isdigit((unsigned char)comm[n - 1]))
		comm[--n] = '\0';
}

/* What reads and writes the records is new in each moment that anybody looks at. */
static bool is_own(const char *comm)
{
	return !strcmp(comm, "perfctl") || !strncmp(comm, "perfpersist", 11);
}

uint32_t compare_process_of(const struct compare_records *r, uint32_t pid, uint32_t tid)
{
	int64_t known = pid == UINT32_MAX ? keytable_get(&r->pids, tid) : -1;

	return pid != UINT32_MAX ? pid : known >= 0 ? (uint32_t)known : tid;
}

int compare_command(struct compare_records *r, uint32_t pid, uint32_t tid, const char *fallback,
		    uint32_t *ret)
{
	uint32_t process = compare_process_of(r, pid, tid);
	const struct processes *all = trace_processes(r->in->trace);
	const char *name = processes_name(all, process, process);
	const char *thread = tid == process ? NULL : processes_name(all, process, tid);
	char comm[64];

	if (!tid || !process)
		return COMPARE_NOBODY;
	snprintf(comm, sizeof(comm), "%s", name ?: fallback);
	cut_number(comm);
	if (is_own(comm))
		return COMPARE_NOBODY;
	if (name && thread && strcmp(name, thread) != 0) {
		snprintf(comm, sizeof(comm), "%s/%s", name, thread);
		cut_digits(comm);
	}
	return compare_name(r->c, comm, ret);
}

/* ── Fields ── */

uint32_t compare_field_number(const struct compare_source *s, size_t i)
{
	struct field_value v;

	field_value(s->fields[i], s->decoder->raw, &v);
	return (uint32_t)v.number;
}

void compare_field_text(const struct compare_source *s, size_t i, char ret[LATENCY_COMM_SIZE])
{
	field_text(s->fields[i], s->decoder->raw, ret, LATENCY_COMM_SIZE);
}

/* ── Time on CPUs ── */

static int running_on(struct compare_records *r, uint32_t cpu, struct compare_running **ret)
{
	if (cpu >= r->n_running) {
		size_t n = (size_t)cpu + 1;
		struct compare_running *bigger = reallocarray(r->running, n, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + r->n_running, 0, (n - r->n_running) * sizeof(*bigger));
		r->running = bigger;
		r->n_running = n;
	}
	*ret = &r->running[cpu];
	return 0;
}

bool compare_records_want(const struct compare_records *r, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	const struct selection *s = r->chosen;

	if (cpu != UINT32_MAX && s->cpus && (cpu >= s->n_cpus || !s->cpus[cpu]))
		return false;
	return selection_wants_whose(s, pid, tid);
}

static int add_run(struct compare_records *r, uint64_t complete, uint32_t cpu, uint32_t pid,
		   const struct compare_running *on, uint64_t end)
{
	struct compare_item *item;
	uint32_t comm;
	int failed;

	if (on->since < complete || !compare_records_want(r, pid, on->tid, cpu))
		return 0;
	failed = compare_command(r, pid, on->tid, on->comm, &comm);
	if (failed)
		return MIN(failed, 0);
	failed = compare_find(r->c, COMPARE_CPU_TIME, COMPARE_NO_NAME, comm, complete, &item);
	return failed ?: compare_span(r->c, item, on->since, end);
}

/* Counts the time between two switches that agree on the task: if records are missing in between, it
 * is unknown. */
static int add_switch(struct compare_records *r, const struct compare_source *s,
		      const struct trace_record *record)
{
	uint32_t prev = compare_field_number(s, 0);
	struct compare_running *on;
	int failed = 0;

	if (record->cpu >= AGGREGATE_CPUS)
		return 0;
	if (running_on(r, record->cpu, &on) < 0)
		return -ENOMEM;
	if (on->known && on->tid == prev && record->time >= on->since) {
		compare_field_text(s, 2, on->comm);
		failed = add_run(r, s->complete, record->cpu, record->pid, on, record->time);
	}
	*on = (struct compare_running){ .known = true,
					.tid = compare_field_number(s, 1),
					.since = record->time };
	compare_field_text(s, 3, on->comm);
	return failed;
}

/* What runs at the end has not been switched away. */
static int finish_runs(struct compare_records *r)
{
	uint64_t complete = 0;
	int failed = 0;

	for (size_t i = 0; i < r->n_sources; i++)
		if (r->sources[i].meaning == SOURCE_SWITCH)
			complete = MAX(complete, r->sources[i].complete);
	for (uint32_t cpu = 0; cpu < r->n_running && failed >= 0; cpu++)
		if (r->running[cpu].known)
			failed = add_run(r, complete, cpu, UINT32_MAX, &r->running[cpu], r->end);
	return failed;
}

/* ── Records ── */

static int count_cpu(struct compare_records *r, struct compare_source *s,
		     const struct trace_record *record)
{
	const struct compare_grid *g = compare_grid_of(r->c);
	uint64_t *count;

	if (record->cpu >= AGGREGATE_CPUS || record->time < MAX(s->complete, compare_begin(g)) ||
	    record->time > g->until)
		return 0;
	count = cpu_counts_at(record->time < g->since ? &s->before : &s->now, record->cpu);
	if (!count)
		return -ENOMEM;
	++*count;
	s->n_cpus = MAX(s->n_cpus, record->cpu + 1);
	return 0;
}

/* Its event, command and function. A sample of CPU time is no other fact of its command. */
static int count(struct compare_records *r, struct compare_source *s,
		 const struct trace_record *record)
{
	enum compare_class class = s->per_sample ? COMPARE_SAMPLED : COMPARE_RECORDS;
	uint32_t what = s->per_sample ? COMPARE_NO_NAME : s->name, comm;
	struct compare_item *item;
	int failed;

	r->n++;
	if (compare_find(r->c, COMPARE_EVENT, s->name, COMPARE_NO_NAME, s->complete, &item) < 0 ||
	    compare_count(r->c, item, record->time, 1, 0) < 0 || count_cpu(r, s, record) < 0)
		return -ENOMEM;
	failed = compare_command(r, record->pid, record->tid, record->comm, &comm);
	if (failed)
		return MIN(failed, 0);
	failed = compare_find(r->c, class, what, comm, s->complete, &item);
	if (failed >= 0)
		failed = compare_count(r->c, item, record->time, 1, compare_time(s, record));
	return s->per_sample && failed >= 0 ? compare_functions_add(r, s, record, comm) : failed;
}

static int read_fields(struct compare_records *r, const struct compare_source *s,
		       const struct trace_record *record)
{
	int failed = record->sample.raw
			     ? decoder_load(s->decoder, record->sample.raw, record->sample.raw_size)
			     : -EBADMSG;

	if (failed == -EBADMSG)
		r->damaged++;
	if (failed < 0)
		return failed == -ENOMEM ? failed : 0;
	return s->meaning == SOURCE_SWITCH ? add_switch(r, s, record)
					   : compare_fatal_add(r, s, record->time);
}

static int add_sample(struct compare_records *r, const struct trace_record *record)
{
	struct compare_source *s = &r->sources[record->event->index];
	int failed = 0;

	r->first = r->first ?: record->time;
	r->end = record->time;
	if (record->pid != UINT32_MAX)
		failed = keytable_set(&r->pids, record->tid, record->pid);
	if (failed >= 0 && selection_has_ids(r->chosen))
		failed = selection_learn(r->chosen, record->pid, record->tid);
	if (failed >= 0 && compare_records_want(r, record->pid, record->tid, record->cpu))
		failed = count(r, s, record);
	if (failed >= 0 && s->meaning && !record->again)
		failed = read_fields(r, s, record);
	return failed;
}

static int add_other(struct compare_records *r, const struct trace_record *record)
{
	compare_fatal_forked(r, record);
	return compare_processes_add(r, record);
}

int compare_records_add(struct compare_records *r, const struct selection *window,
			const struct trace_record *record)
{
	int failed;

	if (window->until && record->time > window->until)
		return 0;
	r->leaf = NULL;
	failed = record->kind == TRACE_SAMPLE && record->event ? add_sample(r, record)
							       : add_other(r, record);
	if (r->findings)
		r->pairs.findings = compare_findings_at(r->findings, record->time);
	return failed ?: latency_records_add(&r->pairs, r->latency, window, record, r->leaf);
}

/* Each CPU's records end at a time of their own: what has not ended by the earliest has not ended. */
static uint64_t end_of_all(const struct compare_records *r)
{
	uint64_t end = r->end;

	for (uint32_t cpu = 0; cpu < r->n_running; cpu++)
		if (r->running[cpu].known)
			end = MIN(end, r->running[cpu].since);
	return end;
}

int compare_records_finish(struct compare_records *r)
{
	int failed = finish_runs(r);

	failed = failed ?: compare_processes_finish(r);
	failed = failed ?: compare_fatal_finish(r);
	failed = failed ?: latency_finish(r->latency, end_of_all(r));
	failed = failed ?: r->findings ? compare_findings_finish(r->findings) : 0;
	failed = failed ?: compare_functions_finish(r);
	r->damaged += r->pairs.damaged;
	return failed ?: compare_finish(r->c);
}

int compare_records_read(struct compare_records *r, const struct selection *window)
{
	struct trace_record record;
	bool chosen;
	int more, failed;

	while ((more = input_next(r->in, window, &record, &chosen)) > 0) {
		failed = compare_records_add(r, window, &record);
		if (failed < 0)
			return failed;
	}
	failed = more < 0 && more != -EBADMSG ? more : compare_records_finish(r);
	return failed < 0 ? failed : more;
}

/* ── Results ── */

const struct compare *compare_records_compared(const struct compare_records *r)
{
	return r->c;
}

const struct compare_source *compare_records_sources(const struct compare_records *r, size_t *ret_n)
{
	*ret_n = r->n_sources;
	return r->sources;
}

const struct finding *const *compare_records_findings(const struct compare_records *r,
						      size_t *ret_n)
{
	*ret_n = r->findings ? r->findings->n_told : 0;
	return r->findings ? r->findings->told : NULL;
}

bool compare_records_lack_time(const struct compare_records *r)
{
	return r->findings && r->findings->n_before < COMPARE_FINDINGS_MIN;
}

const char *compare_records_parent(const struct compare_records *r, uint32_t comm)
{
	int64_t parent = keytable_get(&r->parents, comm);

	return parent < 0 ? NULL : compare_text(r->c, (uint32_t)parent);
}

uint64_t compare_records_n(const struct compare_records *r)
{
	return r->n;
}

uint64_t compare_records_damaged(const struct compare_records *r)
{
	return r->damaged;
}
