// SPDX-License-Identifier: LGPL-2.1-or-later
/* A record, column for column as `perf script` prints it, so that the same parsers read it. */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/replay/script.h"

static void print_padded(const char *text, int width, FILE *f)
{
	int pad = width - (int)strlen(text);

	if (pad > 0)
		fprintf(f, "%*s", pad, "");
	print_text(f, text, strlen(text));
}

/* For an unnamed thread, perf prints its id. */
static void print_comm(const struct trace_record *r, int width, FILE *f)
{
	char unnamed[16];

	if (strcmp(r->comm, "?")) {
		print_padded(r->comm, width, f);
		return;
	}
	snprintf(unnamed, sizeof(unnamed), ":%d", (int)r->tid);
	print_padded(unnamed, width, f);
}

struct record_time script_time_of(const struct script *s, uint64_t time)
{
	uint64_t offset = trace_info(s->in.trace)->realtime_offset;

	return (struct record_time){
		.mono = time,
		.realtime = s->time == TIME_REAL && time ? time + offset : 0,
		/* Sideband about the state before the recording precedes the first time. */
		.relative = time > s->first ? time - s->first : 0,
		.is_relative = s->time == TIME_RELATIVE,
	};
}

static void print_times(const struct script *s, uint64_t time, unsigned fields, FILE *f)
{
	struct record_time shown = script_time_of(s, time);
	struct record_time day = { .realtime = time + trace_info(s->in.trace)->realtime_offset };

	if (fields & FIELD_TOD) {
		time_print(&day, s->nanoseconds, f);
		fputc(' ', f);
	}
	if (fields & FIELD_TIME) {
		time_print(&shown, s->nanoseconds, f);
		fputs(": ", f);
	}
}

/* Prints the columns that begin every line. */
static void print_start(const struct script *s, const struct trace_record *r, unsigned fields,
			bool chain, FILE *f)
{
	if (fields & FIELD_COMM) {
		print_comm(r, chain ? 0 : 16, f);
		fputc(' ', f);
	}
	if (fields & FIELD_PID && fields & FIELD_TID)
		fprintf(f, "%5d/%-5d ", (int)r->pid, (int)r->tid);
	else if (fields & (FIELD_PID | FIELD_TID))
		fprintf(f, "%5d ", (int)(fields & FIELD_PID ? r->pid : r->tid));
	if (fields & FIELD_CPU)
		fprintf(f, "[%03d] ", (int)r->cpu);
	print_times(s, r->time, fields, f);
}

/* perf shows addresses of programs as they are in the file, if there is a chain. */
static void print_frame(const struct symbols_frame *frame, unsigned fields, bool chain, FILE *f)
{
	const struct symbol *symbol = &frame->symbol;

	if (fields & FIELD_IP)
		fprintf(f, "%16" PRIx64, chain ? symbol->place : frame->address);
	if (fields & FIELD_SYM) {
		fputc(' ', f);
		print_text(f, symbol->name, strlen(symbol->name));
		if (fields & FIELD_SYMOFF && strcmp(symbol->name, "[unknown]"))
			fprintf(f, "+0x%" PRIx64, symbol->offset);
	}
	if (fields & FIELD_DSO) {
		const char *path = symbol->dso ? symbol->dso->path : "[unknown]";

		fputs(" (", f);
		print_text(f, path, strlen(path));
		fputc(')', f);
	}
}

size_t script_frames(struct script *s, const struct trace_record *r)
{
	size_t max = s->no_chains ? 1 : MIN(s->max_stack, SCRIPT_STACK_MAX);
	size_t n = 0;

	if (s->symbols)
		return symbols_chain(s->symbols, trace_processes(s->in.trace), r, s->frames, max);
	for (size_t i = 0; i < r->sample.n_callchain && n < max; i++) {
		uint64_t ip;

		memcpy(&ip, (const char *)r->sample.callchain + i * sizeof(ip), sizeof(ip));
		if (ip < (uint64_t)PERF_CONTEXT_MAX)
			s->frames[n++] = (struct symbols_frame){
				.address = ip,
				.kernel = ip >> 63,
				.symbol = { .name = "[unknown]", .place = ip },
			};
	}
	return n;
}

static bool has_chain(const struct script *s, const struct trace_record *r, unsigned fields)
{
	return fields & FIELD_IP && r->event->sample_type & PERF_SAMPLE_CALLCHAIN && !s->no_chains;
}

/* Prints only the place, on the line; a sample without a chain has it, too. */
static void print_place(struct script *s, const struct trace_record *r, unsigned fields, FILE *f)
{
	struct symbols_frame frame = {
		.address = r->sample.ip,
		.symbol = { .name = "[unknown]", .place = r->sample.ip },
	};
	bool kernel = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;

	if (s->symbols)
		symbols_find(s->symbols, trace_processes(s->in.trace), r->pid, r->sample.ip, kernel,
			     &frame.symbol);
	fputc(' ', f);
	print_frame(&frame, fields, false, f);
}

static void print_sample(struct script *s, const struct trace_record *r, FILE *f)
{
	const struct script_event *e = &s->events[r->event->index];
	bool chain = has_chain(s, r, e->fields);

	print_start(s, r, e->fields, chain, f);
	if (e->fields & FIELD_PERIOD)
		fprintf(f, "%10" PRIu64 " ", r->sample.period);
	if (e->fields & FIELD_EVENT) {
		print_padded(r->event->name, s->name_width, f);
		fputs(": ", f);
	}
	if (e->fields & FIELD_TRACE && r->event->format)
		payload_print(e->decoder, &r->sample, f);
	if (e->fields & FIELD_ADDR)
		fprintf(f, " %16" PRIx64, r->sample.addr);
	if (chain) {
		size_t n = script_frames(s, r);

		for (size_t i = 0; i < n; i++) {
			fputs("\n\t", f);
			print_frame(&s->frames[i], e->fields, true, f);
		}
		fputc('\n', f);
	} else if (e->fields & FIELD_IP) {
		print_place(s, r, e->fields, f);
	}
	fputc('\n', f);
}

/* ── Other records, in perf's words ── */

static void print_map(const struct trace_record *r, FILE *f)
{
	const struct map *m = r->map;

	fprintf(f, "PERF_RECORD_%s %d/%d: [0x%" PRIx64 "(0x%" PRIx64 ") @ 0x%" PRIx64 "]: x ",
		r->type == PERF_RECORD_MMAP ? "MMAP" : "MMAP2", (int)r->pid, (int)r->tid, m->start,
		m->end - m->start, m->offset);
	print_text(f, m->dso->path, strlen(m->dso->path));
}

static void print_task(const struct trace_record *r, FILE *f)
{
	fprintf(f, "PERF_RECORD_%s(%d:%d):(%d:%d)", r->kind == TRACE_FORK ? "FORK" : "EXIT",
		(int)r->pid, (int)r->tid, (int)r->ppid, (int)r->ptid);
}

static void print_other(struct script *s, const struct trace_record *r, FILE *f)
{
	/* Print the columns of the first event's samples: the sideband belongs to that event. */
	unsigned fields = s->n_events ? s->events[0].fields : FIELD_COMM | FIELD_TIME;

	print_start(s, r, fields, false, f);
	switch (r->kind) {
	case TRACE_COMM:
		fprintf(f, "PERF_RECORD_COMM%s: ", r->exec ? " exec" : "");
		print_text(f, r->comm, strlen(r->comm));
		fprintf(f, ":%d/%d", (int)r->pid, (int)r->tid);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		print_task(r, f);
		break;
	case TRACE_MMAP:
		print_map(r, f);
		break;
	default:
		fprintf(f, "PERF_RECORD_%s lost %" PRIu64,
			r->type == PERF_RECORD_LOST ? "LOST" : "LOST_SAMPLES", r->lost);
	}
	fputc('\n', f);
}

void script_print(struct script *s, const struct trace_record *r, FILE *f)
{
	if (r->kind == TRACE_SAMPLE)
		print_sample(s, r, f);
	else
		print_other(s, r, f);
}
