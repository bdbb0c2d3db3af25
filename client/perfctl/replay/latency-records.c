// SPDX-License-Identifier: LGPL-2.1-or-later
/* From a trace's records to what they say, for the matching. */
#include "client/perfctl/replay/latency-records.h"

#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/replay/findings.h"
#include "client/perfctl/replay/syscall-names.h"

#define FIELDS 5

struct latency_source {
	enum latency_fact fact; /* 0: none */
	struct decoder *decoder;
	const struct tep_format_field *fields[FIELDS];
	const char *call; /* of syscalls:*; else NULL */
};

struct known {
	const char *event;
	enum latency_fact fact;
	const char *fields[FIELDS];
};

static const struct known known[] = {
	{ "sched:sched_switch",
	  FACT_SWITCH,
	  { "prev_comm", "prev_pid", "next_comm", "next_pid", "prev_state" } },
	{ "sched:sched_wakeup", FACT_WAKEUP, { "comm", "pid" } },
	{ "sched:sched_wakeup_new", FACT_WAKEUP_NEW, { "comm", "pid" } },
	{ "sched:sched_waking", FACT_WAKING, { "comm", "pid" } },
	{ "raw_syscalls:sys_enter", FACT_CALL, { "id" } },
	{ "raw_syscalls:sys_exit", FACT_RETURN, { "id" } },
	{ "block:block_rq_insert", FACT_INSERT, { "dev", "sector", "nr_sector", "rwbs" } },
	{ "block:block_rq_issue", FACT_ISSUE, { "dev", "sector", "nr_sector", "rwbs" } },
	{ "block:block_rq_complete", FACT_COMPLETE, { "dev", "sector", "nr_sector", "rwbs" } },
	{ "irq:irq_handler_entry", FACT_ENTRY, { "irq", "name" } },
	{ "irq:irq_handler_exit", FACT_EXIT, { "irq" } },
	{ "irq:softirq_entry", FACT_SOFT_ENTRY, { "vec" } },
	{ "irq:softirq_exit", FACT_SOFT_EXIT, { "vec" } },
	{ "sched:sched_process_fork",
	  FACT_FORK,
	  { "parent_comm", "parent_pid", "child_comm", "child_pid" } },
	{ "sched:sched_process_exit", FACT_END, { "comm", "pid" } },
	{ "signal:signal_generate", FACT_SIGNAL, { "comm", "pid", "sig", "code", "result" } },
	{ "oom:mark_victim", FACT_VICTIM, { "pid" } },
	{ "vmscan:mm_vmscan_direct_reclaim_begin", FACT_RECLAIM, { "order" } },
	{ "vmscan:mm_vmscan_direct_reclaim_end", FACT_RECLAIMED, { "nr_reclaimed" } },
	{ "vmscan:mm_vmscan_memcg_reclaim_begin", FACT_RECLAIM, { "order" } },
	{ "vmscan:mm_vmscan_memcg_reclaim_end", FACT_RECLAIMED, { "nr_reclaimed" } },
};

static const char enters[] = "syscalls:sys_enter_", exits[] = "syscalls:sys_exit_";
static const struct known single_enter = { enters, FACT_CALL, { "__syscall_nr" } };
static const struct known single_exit = { exits, FACT_RETURN, { "__syscall_nr" } };

#define BIT(fact) (UINT32_C(1) << (fact))

/* The facts that end, begin or explain each kind's intervals. */
static const uint32_t facts_of[LATENCY_KINDS] = {
	[LATENCY_OFF_CPU] = BIT(FACT_SWITCH),
	[LATENCY_WAKEUPS] =
		BIT(FACT_SWITCH) | BIT(FACT_WAKEUP) | BIT(FACT_WAKEUP_NEW) | BIT(FACT_WAKING),
	[LATENCY_SYSCALLS] = BIT(FACT_CALL) | BIT(FACT_RETURN),
	[LATENCY_BLOCK] = BIT(FACT_INSERT) | BIT(FACT_ISSUE) | BIT(FACT_COMPLETE),
	[LATENCY_IRQ] =
		BIT(FACT_ENTRY) | BIT(FACT_EXIT) | BIT(FACT_SOFT_ENTRY) | BIT(FACT_SOFT_EXIT),
};

static bool has_all(const struct latency_records *r, uint32_t facts)
{
	return (r->recorded & facts) == facts;
}

bool latency_records_have(const struct latency_records *r, enum latency_kind kind)
{
	switch (kind) {
	case LATENCY_OFF_CPU:
		return has_all(r, BIT(FACT_SWITCH));
	case LATENCY_WAKEUPS:
		return has_all(r, BIT(FACT_SWITCH)) &&
		       r->recorded & (BIT(FACT_WAKEUP) | BIT(FACT_WAKING));
	case LATENCY_SYSCALLS:
		return has_all(r, BIT(FACT_CALL) | BIT(FACT_RETURN));
	case LATENCY_BLOCK:
		return has_all(r, BIT(FACT_ISSUE) | BIT(FACT_COMPLETE));
	default:
		return has_all(r, BIT(FACT_ENTRY) | BIT(FACT_EXIT)) ||
		       has_all(r, BIT(FACT_SOFT_ENTRY) | BIT(FACT_SOFT_EXIT));
	}
}

/* ── Events ── */

static const struct known *find_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].event, name))
			return &known[i];
	if (!strncmp(name, enters, strlen(enters)))
		return &single_enter;
	return strncmp(name, exits, strlen(exits)) ? NULL : &single_exit;
}

/* An event without the fields that are known here, as on another kernel, says nothing. */
static int open_source(struct latency_records *r, const struct trace_event *e,
		       struct latency_source *ret)
{
	const struct known *k = find_known(e->name);
	struct latency_source s = {};
	int failed;

	if (!k)
		return 0;
	failed = decoders_get(&r->in->decoders, e, &s.decoder);
	if (failed < 0 || !s.decoder)
		return failed;
	for (size_t i = 0; i < FIELDS && k->fields[i]; i++) {
		s.fields[i] = decoder_field(s.decoder, k->fields[i]);
		if (!s.fields[i])
			return 0;
	}
	s.fact = k->fact;
	if (k == &single_enter || k == &single_exit)
		s.call = e->name + strlen(k->event);
	*ret = s;
	return 0;
}

/* If the events for all calls are there, those of single calls would count twice. */
static void leave_out_single_calls(struct latency_records *r, size_t n)
{
	bool call = false, ret = false;

	for (size_t i = 0; i < n; i++) {
		call |= r->sources[i].fact == FACT_CALL && !r->sources[i].call;
		ret |= r->sources[i].fact == FACT_RETURN && !r->sources[i].call;
	}
	for (size_t i = 0; i < n; i++)
		if (r->sources[i].fact == FACT_CALL || r->sources[i].fact == FACT_RETURN)
			if (!r->sources[i].call != (call && ret))
				r->sources[i].fact = 0;
}

static int find_histories(struct latency_records *r, size_t n)
{
	_cleanup_free_ bool *events = calloc(n + 1, sizeof(*events));

	if (!events)
		return -ENOMEM;
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		for (size_t i = 0; i < n; i++)
			events[i] = r->sources[i].fact && facts_of[kind] & BIT(r->sources[i].fact);
		r->histories[kind] = trace_histories(r->in->trace, events);
	}
	return 0;
}

int latency_records_open(struct input *in, struct latency_records *ret)
{
	struct latency_records r = { .in = in };
	size_t n = trace_events(in->trace);
	int failed = 0;

	r.sources = calloc(n + 1, sizeof(*r.sources));
	if (!r.sources)
		return -ENOMEM;
	for (size_t i = 0; failed >= 0 && i < n; i++)
		failed = open_source(&r, trace_event(in->trace, i), &r.sources[i]);
	if (failed >= 0) {
		leave_out_single_calls(&r, n);
		failed = find_histories(&r, n);
	}
	if (failed < 0) {
		latency_records_done(&r);
		return failed;
	}
	for (size_t i = 0; i < n; i++)
		if (r.sources[i].fact)
			r.recorded |= BIT(r.sources[i].fact);
	*ret = r;
	return 0;
}

void latency_records_done(struct latency_records *r)
{
	free(r->sources);
}

/* ── Records ── */

static uint64_t number(const struct latency_source *s, size_t i)
{
	struct field_value v;

	field_value(s->fields[i], s->decoder->raw, &v);
	return v.number;
}

static void text(const struct latency_source *s, size_t i, char *ret, size_t size)
{
	field_text(s->fields[i], s->decoder->raw, ret, size);
}

static uint32_t common_pid(const struct decoder *d)
{
	for (const struct tep_format_field *f = d->event->format.common_fields; f; f = f->next)
		if (!strcmp(f->name, "common_pid") && f->size == sizeof(uint32_t))
			return (uint32_t)field_number(d->raw + f->offset, sizeof(uint32_t), false);
	return UINT32_MAX;
}

static struct latency_who who(const struct latency_source *s, size_t comm)
{
	struct latency_who w = { .tid = (uint32_t)number(s, comm + 1) };

	text(s, comm, w.comm, sizeof(w.comm));
	return w;
}

static int add_sched(struct latency *l, const struct latency_source *s,
		     const struct latency_now *now)
{
	struct latency_who first = who(s, 0), next;

	if (s->fact == FACT_SWITCH) {
		next = who(s, 2);
		return latency_switch(l, now, number(s, 4), &first, &next);
	}
	if (s->fact == FACT_WAKING)
		return latency_waking(l, now, &first);
	return latency_wakeup(l, now, &first, s->fact == FACT_WAKEUP_NEW);
}

/* Numbers are of the kernel's own calls: a 32-bit program's are named after the calls that have
 * these numbers. */
static int add_call(const struct latency_records *r, struct latency *l,
		    const struct latency_source *s, const struct latency_now *now)
{
	int64_t nr = (int64_t)number(s, 0);
	const char *name = s->call ?: r->knows_calls ? syscall_name((uint64_t)nr) : NULL;
	char unnamed[32];

	if (!name && nr >= 0) {
		snprintf(unnamed, sizeof(unnamed), "syscall %lld", (long long)nr);
		name = unnamed;
	}
	if (s->fact == FACT_RETURN)
		return latency_return(l, now, name);
	return name ? latency_call(l, now, name) : 0;
}

static int add_request(struct latency *l, const struct latency_source *s,
		       const struct latency_now *now)
{
	char rwbs[16];
	struct latency_request request = {
		.device = (uint32_t)number(s, 0),
		.sector = number(s, 1),
		.n_sectors = number(s, 2),
		.operation = rwbs,
	};

	text(s, 3, rwbs, sizeof(rwbs));
	if (s->fact == FACT_INSERT)
		return latency_insert(l, now, &request);
	return s->fact == FACT_ISSUE ? latency_issue(l, now, &request)
				     : latency_complete(l, now, &request);
}

static int add_handler(struct latency *l, const struct latency_source *s,
		       const struct latency_now *now)
{
	static const char *const softirqs[] = { "HI",	    "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
						"IRQ_POLL", "TASKLET", "SCHED",	 "HRTIMER", "RCU" };
	struct latency_handler handler = {
		.soft = s->fact == FACT_SOFT_ENTRY || s->fact == FACT_SOFT_EXIT,
		.number = (uint32_t)number(s, 0),
	};
	char name[64] = "";

	if (s->fact == FACT_ENTRY)
		text(s, 1, name, sizeof(name));
	else if (handler.number < ARRAY_SIZE(softirqs))
		snprintf(name, sizeof(name), "%s", softirqs[handler.number]);
	else
		snprintf(name, sizeof(name), "%u", handler.number);
	handler.name = name;
	return s->fact == FACT_ENTRY || s->fact == FACT_SOFT_ENTRY ? latency_entry(l, now, &handler)
								   : latency_exit(l, now, &handler);
}

/* What findings learn beside intervals. */
static int add_finding(struct findings *f, const struct latency_source *s,
		       const struct latency_now *now)
{
	struct latency_who first, child;

	switch (s->fact) {
	case FACT_FORK:
		first = who(s, 0);
		child = who(s, 2);
		return findings_fork(f, now, &first, &child);
	case FACT_END:
		first = who(s, 0);
		return findings_exit(f, now, &first);
	case FACT_SIGNAL:
		first = who(s, 0);
		/* enum in include/trace/events/signal.h: 0 delivered, 2 was pending already */
		if (number(s, 4) != 0 && number(s, 4) != 2)
			return 0;
		return findings_signal(f, now, &first, (int)number(s, 2), (int)number(s, 3));
	case FACT_VICTIM:
		first = (struct latency_who){ .tid = (uint32_t)number(s, 0) };
		return findings_victim(f, now, &first);
	default:
		return findings_reclaim(f, now, s->fact == FACT_RECLAIM);
	}
}

/* Samples tell where threads are; those of tracepoints tell more. */
static bool is_of_clock(const struct trace_record *record)
{
	return record->event->type != PERF_TYPE_TRACEPOINT;
}

/* Most records' functions are in no report. */
static bool has_wanted_chain(const struct latency_records *r, const struct trace_record *record)
{
	enum latency_fact fact;

	if (record->kind != TRACE_SAMPLE || !record->event)
		return false;
	if (r->findings && is_of_clock(record))
		return true;
	fact = r->sources[record->event->index].fact;
	return fact && r->wanted & BIT(fact) && record->sample.n_callchain;
}

static int add_sample(struct latency_records *r, struct latency *l,
		      const struct trace_record *record, const struct flame_node *leaf)
{
	const struct latency_source *s = &r->sources[record->event->index];
	struct latency_now now = {
		.time = record->time,
		.cpu = record->cpu,
		.who.tid = record->tid,
		.chain = record->sample.n_callchain ? leaf : NULL,
	};
	int failed;

	/* A thread that is exiting has no id any more. */
	if (record->tid != UINT32_MAX &&
	    latency_thread(l, record->pid, record->tid, record->comm) < 0)
		return -ENOMEM;
	if (r->findings && is_of_clock(record)) {
		snprintf(now.who.comm, sizeof(now.who.comm), "%s", record->comm);
		now.chain = leaf;
		return findings_sample(r->findings, &now);
	}
	if (!(r->wanted & BIT(s->fact)) || !s->fact || record->again)
		return 0;
	failed = record->sample.raw
			 ? decoder_load(s->decoder, record->sample.raw, record->sample.raw_size)
			 : -EBADMSG;
	if (failed < 0) {
		r->damaged++;
		return failed == -ENOMEM ? failed : 0;
	}
	if (record->tid == UINT32_MAX) /* the thread is exiting; the payload still has its id */
		now.who.tid = common_pid(s->decoder);
	if (strcmp(record->comm, "?"))
		snprintf(now.who.comm, sizeof(now.who.comm), "%s", record->comm);
	if (s->fact <= FACT_WAKING)
		return add_sched(l, s, &now);
	if (s->fact <= FACT_RETURN)
		return add_call(r, l, s, &now);
	if (s->fact <= FACT_COMPLETE)
		return add_request(l, s, &now);
	return s->fact <= FACT_SOFT_EXIT ? add_handler(l, s, &now)
					 : add_finding(r->findings, s, &now);
}

/* It may be of any event. */
static void add_lost(const struct latency_records *r, struct latency *l,
		     const struct trace_record *record)
{
	if (record->lost && input_knows_place(r->in, record))
		for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
			latency_lost(l, kind);
}

/* begun: there was a sample. Before that, sideband describes what was there already. */
static int add_other(const struct latency_records *r, struct latency *l,
		     const struct trace_record *record, bool begun)
{
	switch (record->kind) {
	case TRACE_FORK:
		if (begun)
			return latency_born(l, record->pid, record->tid);
		return latency_thread(l, record->pid, record->tid, record->comm);
	case TRACE_COMM:
		return latency_thread(l, record->pid, record->tid, record->comm);
	case TRACE_EXIT:
		latency_died(l, record->tid);
		return 0;
	case TRACE_LOST:
		add_lost(r, l, record);
		return 0;
	default:
		return 0;
	}
}

static uint32_t facts_wanted(uint32_t kinds)
{
	uint32_t facts = 0;

	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (kinds >> kind & 1)
			facts |= facts_of[kind];
	if (kinds >> LATENCY_OFF_CPU & 1)
		facts |= facts_of[LATENCY_WAKEUPS]; /* who woke it */
	return facts;
}

int latency_records_start(struct latency_records *r, uint64_t since, const struct selection *chosen,
			  struct latency_options *options, struct latency **ret)
{
	int failed = input_look_ahead(r->in, chosen);

	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct trace_history *h = &r->histories[kind];

		/* Both records of a handler are on one CPU. */
		if (kind != LATENCY_IRQ && h->from)
			options->complete[kind] = MAX(h->from, since);
		options->until[kind] = h->known && h->to > h->from ? h->to : 0;
	}
	options->has_wakeups = r->recorded & BIT(FACT_WAKEUP);
	r->wanted = facts_wanted(options->kinds);
	if (r->findings)
		r->wanted |= BIT(FACT_FORK) | BIT(FACT_END) | BIT(FACT_SIGNAL) | BIT(FACT_VICTIM) |
			     BIT(FACT_RECLAIM) | BIT(FACT_RECLAIMED);
	r->knows_calls = syscall_names_fit(trace_info(r->in->trace)->arch);
	return failed < 0 ? failed : latency_new(options, ret);
}

int latency_records_add(struct latency_records *r, struct latency *l,
			const struct selection *window, const struct trace_record *record,
			const struct flame_node *leaf)
{
	if (record->kind == TRACE_SAMPLE && record->event) {
		r->end = record->time;
		return add_sample(r, l, record, leaf);
	}
	if (window->until && record->time > window->until)
		return 0;
	return add_other(r, l, record, r->end);
}

int latency_records_finish(struct latency_records *r, struct latency *l)
{
	return latency_finish(l, r->end) < 0 ? -ENOMEM : 0;
}

void latency_records_end(struct latency_records *r, const struct selection *window)
{
	uint64_t end = 0;

	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (r->histories[kind].known)
			end = MAX(end, r->histories[kind].to);
	if (r->end)
		r->end = MAX(r->end, window->until ? MIN(end, window->until) : end);
}

int latency_records_read(struct latency_records *r, const struct selection *window,
			 const struct selection *chosen, struct latency_options *options,
			 struct aggregate *a, struct latency **ret)
{
	int more = latency_records_start(r, window->since, chosen, options, ret);
	struct trace_record record;
	bool is_chosen;

	if (more < 0)
		return more;
	while ((more = input_next(r->in, window, &record, &is_chosen)) > 0) {
		const struct flame_node *leaf = NULL;
		int failed = has_wanted_chain(r, &record) ? aggregate_add(a, &record, &leaf)
							  : aggregate_count(a, &record);

		if (failed >= 0)
			failed = latency_records_add(r, *ret, window, &record, leaf);
		if (failed < 0)
			return failed;
	}
	latency_records_end(r, window);
	return latency_records_finish(r, *ret) < 0 ? -ENOMEM : more;
}
