// SPDX-License-Identifier: LGPL-2.1-or-later
/* Samples with their call chains, as PerfSample packets: one sequence for each event. Files,
 * functions and chains are written to it once, when they are first needed. */
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/pictures/perfetto-parts.h"

#define CHAIN_DEPTH 256 /* longer than any chain */

/* The kinds of data interned on an event's sequence; a chain always belongs to one event. */
enum kind { KIND_FILE, KIND_FRAME, KIND_CHAIN };

/* PerfEvents.Counter, by config. */
static const uint8_t software[] = {
	[PERF_COUNT_SW_CPU_CLOCK] = 1,	      [PERF_COUNT_SW_TASK_CLOCK] = 3,
	[PERF_COUNT_SW_PAGE_FAULTS] = 2,      [PERF_COUNT_SW_CONTEXT_SWITCHES] = 4,
	[PERF_COUNT_SW_CPU_MIGRATIONS] = 5,   [PERF_COUNT_SW_PAGE_FAULTS_MIN] = 6,
	[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = 7,  [PERF_COUNT_SW_ALIGNMENT_FAULTS] = 8,
	[PERF_COUNT_SW_EMULATION_FAULTS] = 9, [PERF_COUNT_SW_DUMMY] = 20,
};
static const uint8_t hardware[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = 10,
	[PERF_COUNT_HW_INSTRUCTIONS] = 11,
	[PERF_COUNT_HW_CACHE_REFERENCES] = 12,
	[PERF_COUNT_HW_CACHE_MISSES] = 13,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = 14,
	[PERF_COUNT_HW_BRANCH_MISSES] = 15,
	[PERF_COUNT_HW_BUS_CYCLES] = 16,
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = 17,
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = 18,
	[PERF_COUNT_HW_REF_CPU_CYCLES] = 19,
};

static unsigned counter_of(const struct trace_event *e)
{
	if (e->type == PERF_TYPE_SOFTWARE && e->config < ARRAY_SIZE(software))
		return software[e->config];
	if (e->type == PERF_TYPE_HARDWARE && e->config < ARRAY_SIZE(hardware))
		return hardware[e->config];
	return 0;
}

/* The event that triggers the samples. */
static void add_timebase(struct pbuf *b, const struct trace_event *e)
{
	size_t begun = pbuf_begin(b, 1), inner; /* PerfSampleDefaults.timebase */
	unsigned counter = counter_of(e);

	if (e->period)
		pbuf_unsigned(b, e->freq ? 2 : 1, e->period);
	if (counter) {
		pbuf_unsigned(b, 4, counter);
	} else if (e->format) {
		inner = pbuf_begin(b, 3); /* tracepoint */
		pbuf_text(b, 1, e->name, strlen(e->name));
		pbuf_end(b, inner);
	} else {
		inner = pbuf_begin(b, 5); /* raw_event */
		pbuf_unsigned(b, 1, e->type);
		pbuf_unsigned(b, 2, e->config);
		pbuf_end(b, inner);
	}
	pbuf_text(b, 10, e->name, strlen(e->name));
	pbuf_end(b, begun);
}

static void begin_sequence(struct perfetto *p, struct perfetto_event *e, uint64_t time)
{
	size_t packet = packet_begin(p, time, SEQUENCE_SAMPLES + e->event->index, FLAG_CLEARED);
	size_t defaults = pbuf_begin(&p->out, 59); /* trace_packet_defaults */
	size_t samples = pbuf_begin(&p->out, 12);  /* perf_sample_defaults */

	add_timebase(&p->out, e->event);
	pbuf_end(&p->out, samples);
	pbuf_end(&p->out, defaults);
	packet_end(p, packet);
	e->sampling = true;
}

/* 1: write it now; 0: already written; -ENOMEM. */
static int is_new(struct perfetto *p, const struct perfetto_event *e, enum kind kind,
		  uint64_t number)
{
	uint64_t key = (uint64_t)e->event->index << 34 | (uint64_t)kind << 32 | number;
	uint32_t hash = hash_numbers(key, 0), i;

	for (size_t pos = hash; hash_next(&p->interned, hash, &pos, &i);)
		if (p->keys[i] == key)
			return 0;
	if (p->n_keys == p->cap_keys) {
		size_t cap = p->cap_keys ? p->cap_keys * 2 : 256;
		uint64_t *keys = reallocarray(p->keys, cap, sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		p->keys = keys;
		p->cap_keys = cap;
	}
	p->keys[p->n_keys] = key;
	return hash_add(&p->interned, hash, (uint32_t)p->n_keys++) < 0 ? -ENOMEM : 1;
}

/* Numbers begin at 1; file 1 means none. */
static uint64_t file_number(const struct frame *f)
{
	return f->file ? (uint64_t)f->file->index + 2 : 1;
}

static void intern_bytes(struct pbuf *b, uint32_t kind, uint64_t number, const void *bytes,
			 size_t n)
{
	size_t begun = pbuf_begin(b, kind);

	pbuf_unsigned(b, 1, number);
	pbuf_bytes(b, 2, bytes, n);
	pbuf_end(b, begun);
}

static int tell_file(struct perfetto *p, const struct perfetto_event *e, const struct frame *f)
{
	enum { BUILD_IDS = 16, PATHS = 17, MAPPINGS = 19 };
	const char *path = f->file ? f->file->path : "[unknown]";
	uint64_t number = file_number(f);
	struct pbuf *b = &p->out;
	size_t begun;
	int r = is_new(p, e, KIND_FILE, number);

	if (r <= 0)
		return r;
	intern_bytes(b, PATHS, number, path, strlen(path));
	if (f->file && f->file->build_id_size)
		intern_bytes(b, BUILD_IDS, number, f->file->build_id, f->file->build_id_size);
	begun = pbuf_begin(b, MAPPINGS);
	pbuf_unsigned(b, 1, number);
	if (f->file && f->file->build_id_size)
		pbuf_unsigned(b, 2, number);
	pbuf_unsigned(b, 7, number);
	pbuf_end(b, begun);
	return 0;
}

static int tell_frame(struct perfetto *p, const struct perfetto_event *e, const struct frame *f)
{
	enum { FUNCTIONS = 5, FRAMES = 6, KIND_NATIVE = 1, KIND_KERNEL = 2 };
	uint64_t number = (uint64_t)f->index + 1;
	struct pbuf *b = &p->out;
	size_t begun;
	int r = is_new(p, e, KIND_FRAME, number);

	if (r <= 0)
		return r;
	if (tell_file(p, e, f) < 0)
		return -ENOMEM;
	intern_bytes(b, FUNCTIONS, number, f->symbol, strlen(f->symbol));
	begun = pbuf_begin(b, FRAMES);
	pbuf_unsigned(b, 1, number);
	pbuf_unsigned(b, 2, number);
	pbuf_unsigned(b, 3, file_number(f));
	pbuf_unsigned(b, 4, f->start);
	pbuf_unsigned(b, 7, f->kernel ? KIND_KERNEL : KIND_NATIVE);
	pbuf_end(b, begun);
	return 0;
}

/* Within a packet. Perfetto has the outermost function first. */
static int tell_chain(struct perfetto *p, const struct perfetto_event *e,
		      const struct flame_node *leaf)
{
	enum { CALLSTACKS = 7 };
	const struct frame *frames[CHAIN_DEPTH];
	size_t n = 0, data, begun;
	int r = is_new(p, e, KIND_CHAIN, leaf->index);

	if (r <= 0)
		return r;
	for (const struct flame_node *at = leaf; at->frame && n < CHAIN_DEPTH; at = at->parent)
		frames[n++] = at->frame;
	data = pbuf_begin(&p->out, 12); /* interned_data */
	for (size_t i = 0; i < n; i++)
		if (tell_frame(p, e, frames[i]) < 0)
			return -ENOMEM;
	begun = pbuf_begin(&p->out, CALLSTACKS);
	pbuf_unsigned(&p->out, 1, (uint64_t)leaf->index + 1);
	while (n-- > 0)
		pbuf_unsigned(&p->out, 2, (uint64_t)frames[n]->index + 1);
	pbuf_end(&p->out, begun);
	pbuf_end(&p->out, data);
	return 0;
}

static int count(struct perfetto_event *e, uint32_t cpu, uint64_t period, uint64_t *ret)
{
	uint64_t *sum = cpu_counts_at(&e->counts, cpu);

	if (!sum)
		return -ENOMEM;
	*ret = *sum += period;
	return 0;
}

static unsigned cpu_mode(const struct trace_record *r)
{
	switch (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return 1;
	case PERF_RECORD_MISC_USER:
		return 2;
	case PERF_RECORD_MISC_HYPERVISOR:
		return 3;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return 4;
	case PERF_RECORD_MISC_GUEST_USER:
		return 5;
	}
	return 0;
}

int stacks_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *r,
	       const struct perfetto_thread *thread, const struct flame_node *leaf)
{
	uint64_t total = 0;
	size_t packet, sample;

	if (!e->sampling)
		begin_sequence(p, e, r->time);
	if (r->cpu < AGGREGATE_CPUS && count(e, r->cpu, sample_period(r), &total) < 0)
		return -ENOMEM;
	packet = packet_begin(p, r->time, SEQUENCE_SAMPLES + e->event->index, FLAG_NEEDED);
	if (leaf->frame && tell_chain(p, e, leaf) < 0)
		return -ENOMEM;
	sample = pbuf_begin(&p->out, 66); /* perf_sample */
	if (r->cpu < AGGREGATE_CPUS)
		pbuf_unsigned(&p->out, 1, r->cpu);
	pbuf_unsigned(&p->out, 2, thread->pid == UINT32_MAX ? r->tid : thread->pid);
	pbuf_unsigned(&p->out, 3, r->tid);
	if (leaf->frame)
		pbuf_unsigned(&p->out, 4, (uint64_t)leaf->index + 1);
	if (cpu_mode(r))
		pbuf_unsigned(&p->out, 5, cpu_mode(r));
	if (total)
		pbuf_unsigned(&p->out, 6, total);
	pbuf_end(&p->out, sample);
	packet_end(p, packet);
	return 0;
}
