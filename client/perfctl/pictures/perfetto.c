// SPDX-License-Identifier: LGPL-2.1-or-later
/* The trace as a whole: its first packets, the dispatch of records, and the output of packets. The
 * buffers here bound the memory, however long the trace is. */
#include <string.h>
#include <time.h>

#include "client/perfctl/pictures/perfetto-parts.h"
#include "proto/io.h"

#define OUT_SIZE ((size_t)256 << 10)

enum { TRACE_PACKET = 1 }; /* Trace.packet */

size_t packet_begin(struct perfetto *p, uint64_t time, uint32_t sequence, unsigned flags)
{
	size_t begun = pbuf_begin(&p->out, TRACE_PACKET);

	pbuf_unsigned(&p->out, 8, time);
	pbuf_unsigned(&p->out, 58, p->clock); /* timestamp_clock_id */
	pbuf_unsigned(&p->out, 10, sequence);
	if (flags)
		pbuf_unsigned(&p->out, 13, flags);
	return begun;
}

void packet_end(struct perfetto *p, size_t begun)
{
	pbuf_end(&p->out, begun);
}

static int write_out(struct perfetto *p)
{
	int r = pp_write_all(p->fd, p->out.bytes, p->out.n);

	if (r < 0)
		return r;
	p->out.n = 0;
	return p->out.failed ? -ENOMEM : 0;
}

/* ── First packets ── */

enum { REALTIME = 1 }; /* BuiltinClock */

static unsigned clock_of(const struct trace_info *info)
{
	switch (info->clock) {
	case CLOCK_REALTIME:
		return REALTIME;
	case CLOCK_MONOTONIC:
		return 3;
	case CLOCK_MONOTONIC_RAW:
		return 5;
	case CLOCK_BOOTTIME:
		return 6;
	}
	return 128; /* the first that has no meaning beyond its trace */
}

static void add_clock(struct pbuf *b, unsigned clock, uint64_t time)
{
	size_t begun = pbuf_begin(b, 1); /* ClockSnapshot.clocks */

	pbuf_unsigned(b, 1, clock);
	pbuf_unsigned(b, 2, time);
	pbuf_end(b, begun);
}

/*
 * The trace's time is the records' clock. CLOCK_BOOTTIME, perfetto's default, is not told: the file does
 * not say how long the machine had slept. Ftrace events cannot name CLOCK_MONOTONIC; theirs is a clock of
 * the sequence, which shows the same time.
 */
static void add_clocks(struct perfetto *p, uint64_t time)
{
	uint64_t offset = trace_info(p->trace)->realtime_offset;
	size_t packet = packet_begin(p, time, SEQUENCE_SYSTEM, 0);
	size_t begun = pbuf_begin(&p->out, 6); /* clock_snapshot */

	add_clock(&p->out, p->clock, time);
	add_clock(&p->out, CLOCK_OF_SEQUENCE, time);
	if (offset && p->clock != REALTIME)
		add_clock(&p->out, REALTIME, time + offset);
	pbuf_unsigned(&p->out, 2, p->clock); /* primary_trace_clock */
	pbuf_end(&p->out, begun);
	packet_end(p, packet);
}

/* The kernel's version decides the meaning of a thread's state and of a system call's number. */
static void add_system(struct perfetto *p, uint64_t time)
{
	const struct trace_info *info = trace_info(p->trace);
	size_t packet = packet_begin(p, time, SEQUENCE_SYSTEM, 0);
	size_t begun = pbuf_begin(&p->out, 45); /* system_info */
	size_t utsname = pbuf_begin(&p->out, 1);

	pbuf_string(&p->out, 1, "Linux");
	if (info->release && *info->release)
		pbuf_text(&p->out, 3, info->release, strlen(info->release));
	if (info->arch && *info->arch)
		pbuf_text(&p->out, 4, info->arch, strlen(info->arch));
	pbuf_end(&p->out, utsname);
	pbuf_string(&p->out, 4, "perfctl " PP_VERSION); /* tracing_service_version */
	if (info->nr_cpus_avail)
		pbuf_unsigned(&p->out, 8, info->nr_cpus_avail); /* num_cpus */
	if (info->hostname && *info->hostname)
		pbuf_text(&p->out, 17, info->hostname, strlen(info->hostname)); /* machine_name */
	pbuf_end(&p->out, begun);
	packet_end(p, packet);
}

/* ── Events ── */

static int find_event(struct perfetto *p, size_t i, uint32_t *next_field)
{
	struct perfetto_event *e = &p->events[i];
	int r;

	e->event = trace_event(p->trace, i);
	e->first_field = *next_field;
	r = decoders_get(&p->decoders, e->event, &e->decoder);
	if (r < 0 || !e->decoder)
		return r; /* its records are shown without fields */
	for (const struct tep_format_field *f = e->decoder->event->format.fields; f; f = f->next)
		(*next_field)++;
	return 0;
}

int perfetto_new(int fd, struct trace *t, const struct aggregate *a, struct perfetto **ret)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	uint32_t next_field = 1;
	int r = -ENOMEM;

	if (!p)
		return -ENOMEM;
	p->fd = fd;
	p->trace = t;
	p->clock = clock_of(trace_info(t));
	p->a = a;
	p->n_events = trace_events(t);
	p->events = calloc(p->n_events + 1, sizeof(*p->events));
	if (!p->events || decoders_init(&p->decoders, p->n_events) < 0)
		goto fail;
	for (size_t i = 0; i < p->n_events; i++) {
		r = find_event(p, i, &next_field);
		if (r < 0)
			goto fail;
		if (!strcmp(p->events[i].event->name, "raw_syscalls:sys_enter"))
			p->has_raw_syscalls = true;
	}
	for (size_t i = 0; i < p->n_events; i++)
		ftrace_find(p, &p->events[i]);
	*ret = p;
	return 0;

fail:
	perfetto_free(p);
	return r;
}

struct perfetto_cpu *perfetto_cpu(struct perfetto *p, uint32_t cpu)
{
	if (cpu >= p->n_cpus) {
		size_t n = (size_t)cpu + 1;
		struct perfetto_cpu *bigger = reallocarray(p->cpus, n, sizeof(*bigger));

		if (!bigger)
			return NULL;
		memset(bigger + p->n_cpus, 0, (n - p->n_cpus) * sizeof(*bigger));
		p->cpus = bigger;
		p->n_cpus = n;
	}
	return &p->cpus[cpu];
}

/* A tracepoint is written as such; with a call chain it is a sample, too. */
static int add_sample(struct perfetto *p, const struct trace_record *record,
		      const struct flame_node *leaf)
{
	struct perfetto_event *e;
	struct perfetto_thread *thread;
	int r;

	if (!record->event || record->event->index >= p->n_events)
		return 0;
	e = &p->events[record->event->index];
	if (!p->begun) {
		add_clocks(p, record->time);
		add_system(p, record->time);
		p->begun = true;
	}
	r = threads_sample(p, record, &thread);
	if (r < 0)
		return r;
	if (!record->event->format)
		return stacks_add(p, e, record, thread, leaf);
	r = e->native ? ftrace_add(p, e, record) : 0;
	if (r == 0)
		r = instants_add(p, e, record, thread);
	if (r >= 0 && record->sample.n_callchain)
		r = stacks_add(p, e, record, thread, leaf);
	return r;
}

int perfetto_add(struct perfetto *p, const struct trace_record *record,
		 const struct flame_node *leaf)
{
	int r = 0;

	switch (record->kind) {
	case TRACE_SAMPLE:
		r = add_sample(p, record, leaf);
		break;
	case TRACE_COMM:
	case TRACE_FORK:
		r = threads_record(p, record);
		break;
	case TRACE_LOST:
		ftrace_lost(p, record->cpu);
		break;
	default:
		break;
	}
	if (r < 0)
		return r;
	return p->out.n >= OUT_SIZE || p->out.failed ? write_out(p) : 0;
}

int perfetto_finish(struct perfetto *p)
{
	int r = ftrace_flush(p);

	return r < 0 ? r : write_out(p);
}

uint64_t perfetto_damaged(const struct perfetto *p)
{
	return p->damaged;
}

void perfetto_free(struct perfetto *p)
{
	if (!p)
		return;
	decoders_done(&p->decoders);
	for (size_t i = 0; p->events && i < p->n_events; i++)
		cpu_counts_done(&p->events[i].counts);
	for (size_t i = 0; i < p->n_cpus; i++)
		pbuf_done(&p->cpus[i].events);
	free(p->events);
	free(p->cpus);
	free(p->threads);
	free(p->keys);
	hash_done(&p->thread_hash);
	hash_done(&p->interned);
	pbuf_done(&p->out);
	free(p);
}
