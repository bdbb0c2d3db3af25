// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tracepoints that perfetto knows: from sched_switch it draws the tasks on each CPU and each
 * thread's state, from system calls and interrupts how long they took. An event is one of these
 * only if it has all the fields listed here; otherwise, as on another kernel, it is shown like any
 * other event.
 */
#include <string.h>

#include "client/perfctl/pictures/perfetto-parts.h"

#define BUNDLE_SIZE ((size_t)64 << 10)
#define BUNDLE_CPUS 1024 /* perfetto takes a trace with more for damaged */

/* number: of the field in FtraceEvent; for its own fields: their number there, and whether they are
 * text there. */
struct native {
	const char *event;
	uint32_t number;
	struct {
		const char *name;
		uint32_t number;
		bool text;
	} fields[NATIVE_FIELDS];
};

static const struct native natives[] = {
	{ "sched:sched_switch",
	  4,
	  { { "prev_comm", 1, true },
	    { "prev_pid", 2, false },
	    { "prev_prio", 3, false },
	    { "prev_state", 4, false },
	    { "next_comm", 5, true },
	    { "next_pid", 6, false },
	    { "next_prio", 7, false } } },
	{ "sched:sched_wakeup",
	  17,
	  { { "comm", 1, true },
	    { "pid", 2, false },
	    { "prio", 3, false },
	    { "target_cpu", 5, false } } },
	{ "sched:sched_waking",
	  20,
	  { { "comm", 1, true },
	    { "pid", 2, false },
	    { "prio", 3, false },
	    { "target_cpu", 5, false } } },
	{ "sched:sched_wakeup_new",
	  114,
	  { { "comm", 1, true },
	    { "pid", 2, false },
	    { "prio", 3, false },
	    { "target_cpu", 5, false } } },
	{ "sched:sched_process_exec",
	  237,
	  { { "filename", 1, true }, { "pid", 2, false }, { "old_pid", 3, false } } },
	{ "sched:sched_process_exit",
	  238,
	  { { "comm", 1, true }, { "pid", 2, false }, { "prio", 4, false } } },
	{ "sched:sched_process_fork",
	  239,
	  { { "parent_comm", 1, true },
	    { "parent_pid", 2, false },
	    { "child_comm", 3, true },
	    { "child_pid", 4, false } } },
	{ "sched:sched_process_free",
	  240,
	  { { "comm", 1, true }, { "pid", 2, false }, { "prio", 3, false } } },
	{ "sched:sched_process_wait",
	  242,
	  { { "comm", 1, true }, { "pid", 2, false }, { "prio", 3, false } } },
	{ "sched:sched_migrate_task",
	  491,
	  { { "comm", 1, true },
	    { "pid", 2, false },
	    { "prio", 3, false },
	    { "orig_cpu", 4, false },
	    { "dest_cpu", 5, false } } },
	{ "task:task_newtask",
	  235,
	  { { "pid", 1, false },
	    { "comm", 2, true },
	    { "clone_flags", 3, false },
	    { "oom_score_adj", 4, false } } },
	{ "task:task_rename",
	  236,
	  { { "pid", 1, false },
	    { "oldcomm", 2, true },
	    { "newcomm", 3, true },
	    { "oom_score_adj", 4, false } } },
	{ "raw_syscalls:sys_enter", 329, { { "id", 1, false }, { "args", 2, false } } },
	{ "raw_syscalls:sys_exit", 330, { { "id", 1, false }, { "ret", 2, false } } },
	{ "irq:irq_handler_entry", 36, { { "irq", 1, false }, { "name", 2, true } } },
	{ "irq:irq_handler_exit", 37, { { "irq", 1, false }, { "ret", 2, false } } },
	{ "irq:softirq_entry", 24, { { "vec", 1, false } } },
	{ "irq:softirq_exit", 25, { { "vec", 1, false } } },
	{ "irq:softirq_raise", 26, { { "vec", 1, false } } },
	{ "power:cpu_idle", 13, { { "state", 1, false }, { "cpu_id", 2, false } } },
	{ "power:cpu_frequency", 11, { { "state", 1, false }, { "cpu_id", 2, false } } },
	{ "workqueue:workqueue_execute_start",
	  58,
	  { { "work", 1, false }, { "function", 2, false } } },
	{ "workqueue:workqueue_execute_end",
	  57,
	  { { "work", 1, false }, { "function", 2, false } } },
};

/* A single system call's tracepoints are included in those for all calls. */
static const struct native sys_enter = { "syscalls:sys_enter_",
					 329,
					 { { "__syscall_nr", 1, false } } };
static const struct native sys_exit = { "syscalls:sys_exit_",
					330,
					{ { "__syscall_nr", 1, false }, { "ret", 2, false } } };

static const struct native *native_of(const struct perfetto *p, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(natives); i++)
		if (!strcmp(natives[i].event, name))
			return &natives[i];
	if (p->has_raw_syscalls) /* otherwise each call would be there twice */
		return NULL;
	if (!strncmp(name, sys_enter.event, strlen(sys_enter.event)))
		return &sys_enter;
	if (!strncmp(name, sys_exit.event, strlen(sys_exit.event)))
		return &sys_exit;
	return NULL;
}

void ftrace_find(struct perfetto *p, struct perfetto_event *e)
{
	const struct native *native = native_of(p, e->event->name);

	if (!native || !e->decoder)
		return;
	for (size_t i = 0; i < NATIVE_FIELDS && native->fields[i].name; i++) {
		e->native_fields[i] = decoder_field(e->decoder, native->fields[i].name);
		if (!e->native_fields[i])
			return;
	}
	e->native = native;
}

static void add_value(struct pbuf *b, const struct tep_format_field *f, const unsigned char *raw,
		      uint32_t number, bool text)
{
	struct field_value v;

	field_value(f, raw, &v);
	if (text) {
		if (v.kind == FIELD_STRING)
			pbuf_text(b, number, (const char *)v.bytes, v.n);
	} else if (v.kind == FIELD_ARRAY) {
		for (size_t i = 0; (i + 1) * v.element <= v.n; i++)
			pbuf_unsigned(b, number, field_element(f, &v, i));
	} else if (v.kind < FIELD_STRING) {
		pbuf_unsigned(b, number, v.number);
	}
}

/* The arguments follow the number of the system call, a word each. */
static void add_arguments(struct pbuf *b, const struct perfetto_event *e)
{
	for (const struct tep_format_field *f = e->native_fields[0]->next; f; f = f->next)
		add_value(b, f, e->decoder->raw, 2, false);
}

static void add_event(struct pbuf *b, const struct perfetto_event *e,
		      const struct trace_record *record)
{
	const struct native *native = e->native;
	size_t event = pbuf_begin(b, 2), own; /* FtraceEventBundle.event */

	pbuf_unsigned(b, 1, record->time);
	pbuf_unsigned(b, 2, record->tid);
	own = pbuf_begin(b, native->number);
	for (size_t i = 0; i < NATIVE_FIELDS && native->fields[i].name; i++)
		add_value(b, e->native_fields[i], e->decoder->raw, native->fields[i].number,
			  native->fields[i].text);
	if (native == &sys_enter)
		add_arguments(b, e);
	pbuf_end(b, own);
	pbuf_end(b, event);
}

/* A bundle has events of one CPU; perfetto sorts those of different bundles. */
static int flush_cpu(struct perfetto *p, uint32_t cpu)
{
	struct perfetto_cpu *c = &p->cpus[cpu];
	size_t packet, bundle;

	if (c->events.failed)
		return -ENOMEM;
	if (!c->events.n)
		return 0;
	packet = packet_begin(p, c->time, SEQUENCE_SYSTEM, 0);
	bundle = pbuf_begin(&p->out, 1); /* ftrace_events */
	pbuf_unsigned(&p->out, 1, cpu);
	if (c->lost)
		pbuf_unsigned(&p->out, 3, 1);	  /* lost_events */
	pbuf_unsigned(&p->out, 5, FTRACE_GLOBAL); /* ftrace_clock */
	pbuf_append(&p->out, &c->events);
	pbuf_end(&p->out, bundle);
	packet_end(p, packet);
	c->events.n = 0;
	c->lost = false;
	return 0;
}

/* 1: added; 0: the record does not fit the event after all. */
int ftrace_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *record)
{
	struct perfetto_cpu *c;
	int r;

	if (record->cpu >= BUNDLE_CPUS)
		return 0;
	r = decoder_load(e->decoder, record->sample.raw, record->sample.raw_size);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	c = perfetto_cpu(p, record->cpu);
	if (!c)
		return -ENOMEM;
	add_event(&c->events, e, record);
	c->time = record->time;
	r = c->events.n >= BUNDLE_SIZE || c->events.failed ? flush_cpu(p, record->cpu) : 0;
	return r < 0 ? r : 1;
}

void ftrace_lost(struct perfetto *p, uint32_t cpu)
{
	/* A loss on a CPU without any event needs no mark. */
	if (cpu < p->n_cpus && flush_cpu(p, cpu) >= 0)
		p->cpus[cpu].lost = true;
}

int ftrace_flush(struct perfetto *p)
{
	int r = 0;

	for (size_t i = 0; i < p->n_cpus && r >= 0; i++)
		r = flush_cpu(p, (uint32_t)i);
	return r;
}
