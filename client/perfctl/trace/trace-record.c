// SPDX-License-Identifier: LGPL-2.1-or-later
/* One record: its decoded fields, and its effect on the processes. */
#include <string.h>
#include <sys/sysmacros.h>

#include "client/perfctl/trace/trace-internal.h"

#define KERNEL_PID ((uint32_t)-1)

/* ── Decoding ───────────────────────────────────────────────────────────────────────────── */

static bool decode_sample(const struct event *e, const uint8_t *bytes, size_t size,
			  struct trace_record *record)
{
	uint64_t type = e->pub.sample_type;
	const struct pp_sample_form form = {
		.sample_type = type,
		.read_format = e->read_format,
		.sample_regs_user = e->sample_regs_user,
	};
	struct pp_sample s;

	if (pp_sample_parse(bytes, size, &form, &s) < 0)
		return false;
	record->kind = TRACE_SAMPLE;
	record->event = &e->pub;
	record->time = s.time;
	record->cpu = s.cpu;
	record->pid = s.pid;
	record->tid = s.tid;
	record->sample = (struct perfpersist_sample){
		.cpu = s.cpu,
		.pid = s.pid,
		.tid = s.tid,
		.time = s.time,
		.ip = s.ip,
		.addr = s.addr,
		.id = s.id,
		.period = type & PERF_SAMPLE_PERIOD ? s.period
			  : e->pub.freq		    ? 0
						    : e->pub.period,
		.callchain = s.callchain,
		.n_callchain = s.n_callchain,
		.raw = s.raw,
		.raw_size = s.raw_size,
		.user_abi = s.user_abi,
		.user_regs = s.user_regs,
		.n_user_regs = s.n_user_regs,
		.user_stack = s.user_stack,
		.user_stack_size = s.user_stack_size,
		.record = bytes,
		.record_size = size,
	};
	return true;
}

static void take_task(struct decoded *d)
{
	struct trace_record *record = &d->record;

	record->kind = record->type == PERF_RECORD_FORK ? TRACE_FORK : TRACE_EXIT;
	record->pid = d->fields.pid;
	record->ppid = d->fields.ppid;
	record->tid = d->fields.tid;
	record->ptid = d->fields.ptid;
	if (!record->time)
		record->time = d->fields.task_time;
}

static void take_map(struct decoded *d)
{
	struct trace_record *record = &d->record;
	uint32_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	record->kind = TRACE_MMAP;
	record->pid = d->fields.pid;
	record->tid = d->fields.tid;
	if (mode == PERF_RECORD_MISC_KERNEL)
		record->pid = KERNEL_PID;
	else if (mode > PERF_RECORD_MISC_USER || d->fields.length == 0) /* a guest's */
		record->kind = TRACE_OTHER;
}

/* A function loaded into the kernel: mapped as a file of its own with its name. After its removal,
 * the addresses belong to nobody, or to the next one. */
static void take_symbol(struct decoded *d)
{
	struct trace_record *record = &d->record;

	record->pid = KERNEL_PID;
	d->gone = d->fields.kind_flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	if (!d->gone && d->fields.length)
		record->kind = TRACE_MMAP;
}

static void take_lost(const struct trace *t, struct decoded *d, const struct event *e)
{
	struct trace_record *record = &d->record;
	int64_t i = -1;

	/* A BPF program of `perf record --filter` has dropped them (PERF_RECORD_MISC_LOST_SAMPLES_BPF of perf's). */
	if (record->type == PERF_RECORD_LOST_SAMPLES && record->misc & 1U << 15)
		return;
	record->kind = TRACE_LOST;
	if (record->type == PERF_RECORD_LOST)
		i = keytable_get(&t->by_id, d->fields.lost_id);
	record->event = i < 0 ? &e->pub : &t->events[i]->pub;
	record->lost = d->fields.number;
}

/* Other records change nothing here, and may contain anything. */
static bool is_followed(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return true;
	default:
		return false;
	}
}

static bool decode_other(const struct trace *t, const struct event *e, const uint8_t *bytes,
			 size_t size, struct decoded *d)
{
	struct trace_record *record = &d->record;
	struct pp_record *fields = &d->fields;

	if (pp_record_open(bytes, size, e->sample_id_all ? e->pub.sample_type : 0, fields) < 0)
		return false;
	record->time = fields->time;
	record->cpu = fields->cpu;
	record->pid = fields->on_pid;
	record->tid = fields->on_tid;
	if (!is_followed(record->type))
		return true;
	if (pp_record_parse(fields) < 0)
		return false;
	switch (record->type) {
	case PERF_RECORD_COMM:
		record->kind = TRACE_COMM;
		record->pid = fields->pid;
		record->tid = fields->tid;
		record->exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		take_task(d);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		take_map(d);
		break;
	case PERF_RECORD_KSYMBOL:
		take_symbol(d);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		take_lost(t, d, e);
		break;
	}
	return true;
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
	if (h.type >= PERF_FILE_USER)
		return 0;
	e = events_of(t, record, h.size, h.type);
	if (!e) /* a sample of an unknown event */
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
		ret->record.time = 0; /* perf's mark for none */
	return 0;
}

/* ── Effects ───────────────────────────────────────────────────────────────── */

/* "[kernel.kallsyms]_text": the file, and the symbol whose address is the offset. */
static const char *map_path(const char *text, char buffer[64])
{
	static const char kernel[] = "[kernel.kallsyms]";

	if (strncmp(text, kernel, sizeof(kernel) - 1))
		return text;
	return memcpy(buffer, kernel, sizeof(kernel));
}

/* The build id, or device and inode, identify the file. */
static int apply_map(struct trace *t, struct decoded *d)
{
	const struct pp_record *fields = &d->fields;
	const uint8_t *build_id = NULL;
	size_t build_id_size = 0;
	uint64_t device = 0, inode = 0;
	char buffer[64];
	int r;

	if (fields->type == PERF_RECORD_MMAP2 && fields->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		build_id = fields->file.build_id;
		build_id_size = MIN(fields->file.build_id_size, sizeof(fields->file.build_id));
	} else {
		device = makedev(fields->file.major, fields->file.minor);
		inode = fields->file.inode;
	}
	r = processes_map(t->processes, d->record.pid, fields->start, fields->length,
			  fields->offset, map_path(fields->text, buffer), build_id, build_id_size,
			  device, inode, &d->record.map);
	if (!d->record.map) /* at the very last address */
		d->record.kind = TRACE_OTHER;
	return r;
}

int record_apply(struct trace *t, struct decoded *d)
{
	struct trace_record *record = &d->record;
	const char *name;
	int r = 0;

	switch (record->kind) {
	case TRACE_COMM:
		r = processes_comm(t->processes, record->pid, record->tid, d->fields.text,
				   record->exec);
		break;
	case TRACE_FORK:
		r = processes_fork(t->processes, record->ppid, record->ptid, record->pid,
				   record->tid);
		if (r == 0 && record->pid != record->ppid &&
		    record->misc & PERF_RECORD_MISC_FORK_EXEC)
			processes_unmap(t->processes, record->pid);
		break;
	case TRACE_EXIT:
		r = processes_exit(t->processes, record->pid, record->tid);
		break;
	case TRACE_MMAP:
		r = apply_map(t, d);
		break;
	default:
		if (d->gone)
			r = processes_unmap_symbol(t->processes, d->fields.start, d->fields.text);
		break;
	}
	if (r < 0)
		return r;
	name = processes_name(t->processes, record->pid, record->tid);
	record->comm = name ? name : "?";
	return 0;
}
