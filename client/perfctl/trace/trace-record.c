// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One record: what its fields are, as perf_event_open(2) orders them, and what it does to the
 * processes. Each read is bounded by the record.
 */
#include <string.h>
#include <sys/sysmacros.h>

#include "client/perfctl/trace/trace-cursor.h"
#include "client/perfctl/trace/trace-internal.h"

#define KERNEL_PID ((uint32_t)-1)

/* ── Samples ────────────────────────────────────────────────────────────────────────────── */

static void skip_read_values(struct cursor *c, uint64_t read_format)
{
	uint64_t each = 1, values = 0, n;

	if (read_format & PERF_FORMAT_ID)
		each++;
	if (read_format & (1U << 4)) /* PERF_FORMAT_LOST, which old headers lack */
		each++;
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		values++;
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		values++;
	n = read_format & PERF_FORMAT_GROUP ? cursor_u64(c) : 1;
	if (n > c->left / (each * 8))
		c->bad = true;
	else
		cursor_bytes(c, (values + n * each) * 8);
}

static void read_callchain(struct cursor *c, struct perfpersist_sample *s)
{
	uint64_t n = cursor_u64(c);

	if (n > c->left / sizeof(uint64_t)) {
		c->bad = true;
		return;
	}
	s->callchain = cursor_bytes(c, n * sizeof(uint64_t));
	s->n_callchain = n;
}

static void read_fields(const struct event *e, struct cursor *c, struct perfpersist_sample *s)
{
	uint64_t type = e->pub.sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		s->id = cursor_u64(c);
	if (type & PERF_SAMPLE_IP)
		s->ip = cursor_u64(c);
	if (type & PERF_SAMPLE_TID) {
		s->pid = cursor_u32(c);
		s->tid = cursor_u32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = cursor_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		s->addr = cursor_u64(c);
	if (type & PERF_SAMPLE_ID)
		s->id = cursor_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		cursor_u64(c);
	if (type & PERF_SAMPLE_CPU) {
		s->cpu = cursor_u32(c);
		cursor_u32(c);
	}
	s->period = type & PERF_SAMPLE_PERIOD ? cursor_u64(c) : e->pub.freq ? 0 : e->pub.period;
	if (type & PERF_SAMPLE_READ)
		skip_read_values(c, e->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		read_callchain(c, s);
	if (type & PERF_SAMPLE_RAW) {
		s->raw_size = cursor_u32(c);
		s->raw = cursor_bytes(c, s->raw_size);
	}
}

static bool decode_sample(const struct event *e, const uint8_t *record, size_t size,
			  struct trace_record *rec)
{
	struct perfpersist_sample *s = &rec->sample;
	struct cursor c = { .p = record, .left = size };

	cursor_bytes(&c, sizeof(struct perf_event_header));
	read_fields(e, &c, s);
	s->record = record;
	s->record_size = size;
	rec->kind = TRACE_SAMPLE;
	rec->event = &e->pub;
	rec->time = s->time;
	rec->cpu = s->cpu;
	rec->pid = s->pid;
	rec->tid = s->tid;
	return !c.bad;
}

/* ── What stands behind all other records ───────────────────────────────────────────────── */

static size_t sample_id_size(const struct event *e)
{
	uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	if (!e->sample_id_all)
		return 0;
	return 8 * (size_t)__builtin_popcountll(e->pub.sample_type & fields);
}

static void decode_sample_id(const struct event *e, struct cursor c, struct trace_record *record)
{
	uint64_t type = e->sample_id_all ? e->pub.sample_type : 0;

	if (type & PERF_SAMPLE_TID) {
		record->pid = cursor_u32(&c);
		record->tid = cursor_u32(&c);
	}
	if (type & PERF_SAMPLE_TIME)
		record->time = cursor_u64(&c);
	if (type & PERF_SAMPLE_ID)
		cursor_u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		cursor_u64(&c);
	if (type & PERF_SAMPLE_CPU)
		record->cpu = cursor_u32(&c);
}

/* ── The records of processes ───────────────────────────────────────────────────────────── */

static void decode_comm(struct cursor *c, struct decoded *d)
{
	struct trace_record *record = &d->record;

	record->kind = TRACE_COMM;
	record->pid = cursor_u32(c);
	record->tid = cursor_u32(c);
	record->exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
	d->text = cursor_text(c, c->left);
}

static void decode_task(struct cursor *c, struct decoded *d)
{
	struct trace_record *record = &d->record;
	uint64_t time;

	record->kind = record->type == PERF_RECORD_FORK ? TRACE_FORK : TRACE_EXIT;
	record->pid = cursor_u32(c);
	record->ppid = cursor_u32(c);
	record->tid = cursor_u32(c);
	record->ptid = d->ptid = cursor_u32(c);
	time = cursor_u64(c);
	if (!record->time)
		record->time = time;
}

/* A build id, or device, inode and its generation. */
static void decode_identity(struct cursor *c, struct decoded *d)
{
	const uint8_t *p = cursor_bytes(c, 24);

	if (!p)
		return;
	if (!(d->record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		uint32_t device[2];

		memcpy(device, p, sizeof(device));
		memcpy(&d->inode, p + sizeof(device), sizeof(d->inode));
		d->device = makedev(device[0], device[1]);
		return;
	}
	d->build_id_size = MIN(p[0], (size_t)BUILD_ID_SIZE_MAX);
	d->build_id = p + 4;
}

static void decode_map(struct cursor *c, struct decoded *d)
{
	struct trace_record *record = &d->record;
	uint32_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	record->kind = TRACE_MMAP;
	record->pid = cursor_u32(c);
	record->tid = cursor_u32(c);
	d->start = cursor_u64(c);
	d->size = cursor_u64(c);
	d->offset = cursor_u64(c);
	if (record->type == PERF_RECORD_MMAP2) {
		decode_identity(c, d);
		cursor_bytes(c, 2 * sizeof(uint32_t)); /* protection, flags */
	}
	d->text = cursor_text(c, c->left);
	if (mode == PERF_RECORD_MISC_KERNEL)
		record->pid = KERNEL_PID;
	else if (mode > PERF_RECORD_MISC_USER || d->size == 0) /* a guest's */
		record->kind = TRACE_OTHER;
}

/* A function that came into the kernel: mapped as a file of its own, that has its name. When it
 * leaves, the addresses are nobody's, or the next one's. */
static void decode_ksymbol(struct cursor *c, struct decoded *d)
{
	struct trace_record *record = &d->record;
	const uint8_t *type_flags;
	uint16_t flags = 0;

	d->start = cursor_u64(c);
	d->size = cursor_u32(c);
	type_flags = cursor_bytes(c, 2 * sizeof(uint16_t));
	if (type_flags)
		memcpy(&flags, type_flags + 2, sizeof(flags));
	d->text = cursor_text(c, c->left);
	record->pid = KERNEL_PID;
	d->gone = flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	if (!d->gone && d->size)
		record->kind = TRACE_MMAP;
}

static void decode_lost(const struct trace *t, struct cursor *c, struct decoded *d,
			const struct event *e)
{
	struct trace_record *record = &d->record;
	int64_t i = -1;

	record->kind = TRACE_LOST;
	if (record->type == PERF_RECORD_LOST)
		i = keytable_get(&t->by_id, cursor_u64(c));
	record->event = i < 0 ? &e->pub : &t->events[i]->pub;
	record->lost = cursor_u64(c);
}

static bool decode_other(const struct trace *t, const struct event *e, const uint8_t *record,
			 size_t size, struct decoded *d)
{
	size_t id_size = sample_id_size(e);
	struct cursor c = { .p = record + sizeof(struct perf_event_header),
			    .left = size - sizeof(struct perf_event_header) };
	struct cursor id;

	if (id_size > c.left)
		return false;
	c.left -= id_size;
	id = (struct cursor){ .p = c.p + c.left, .left = id_size };
	decode_sample_id(e, id, &d->record);
	switch (d->record.type) {
	case PERF_RECORD_COMM:
		decode_comm(&c, d);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		decode_task(&c, d);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		decode_map(&c, d);
		break;
	case PERF_RECORD_KSYMBOL:
		decode_ksymbol(&c, d);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		decode_lost(t, &c, d, e);
		break;
	default:
		break;
	}
	return !c.bad;
}

int record_decode(const struct trace *t, const uint8_t *record, struct decoded *ret,
		  const char **ret_why)
{
	struct perf_event_header h;
	const struct event *e;
	bool good = true;

	memcpy(&h, record, sizeof(h));
	memset(ret, 0, sizeof(*ret));
	ret->record.type = h.type;
	ret->record.misc = h.misc;
	ret->record.kind = TRACE_OTHER;
	if (h.type >= RECORD_USER)
		return 0;
	e = events_of(t, record, h.size, h.type);
	if (!e) /* a sample of an event that the file does not describe */
		good = h.size >= events_id_end(t);
	else if (h.type == PERF_RECORD_SAMPLE)
		good = decode_sample(e, record, h.size, &ret->record);
	else
		good = decode_other(t, e, record, h.size, ret);
	if (!good) {
		*ret_why = "is too short for what must be in it";
		return -EBADMSG;
	}
	if (ret->record.time == UINT64_MAX)
		ret->record.time = 0; /* perf's word for none */
	return 0;
}

/* ── What follows from it ───────────────────────────────────────────────────────────────── */

/* "[kernel.kallsyms]_text": the file, and the symbol that the offset is the address of. */
static const char *map_path(const char *text, char buffer[64])
{
	static const char kernel[] = "[kernel.kallsyms]";

	if (strncmp(text, kernel, sizeof(kernel) - 1))
		return text;
	return memcpy(buffer, kernel, sizeof(kernel));
}

int record_apply(struct trace *t, struct decoded *d)
{
	struct trace_record *record = &d->record;
	const char *name;
	char buffer[64];
	int r = 0;

	switch (record->kind) {
	case TRACE_COMM:
		r = processes_comm(t->processes, record->pid, record->tid, d->text, record->exec);
		break;
	case TRACE_FORK:
		r = processes_fork(t->processes, record->ppid, d->ptid, record->pid, record->tid);
		if (r == 0 && record->pid != record->ppid &&
		    record->misc & PERF_RECORD_MISC_FORK_EXEC)
			processes_unmap(t->processes, record->pid);
		break;
	case TRACE_EXIT:
		r = processes_exit(t->processes, record->pid, record->tid);
		break;
	case TRACE_MMAP:
		r = processes_map(t->processes, record->pid, d->start, d->size, d->offset,
				  map_path(d->text, buffer), d->build_id, d->build_id_size,
				  d->device, d->inode, &record->map);
		if (!record->map) /* at the very last address */
			record->kind = TRACE_OTHER;
		break;
	default:
		if (d->gone)
			r = processes_unmap_symbol(t->processes, d->start, d->text);
		break;
	}
	if (r < 0)
		return r;
	name = processes_name(t->processes, record->pid, record->tid);
	record->comm = name ? name : "?";
	return 0;
}
