// SPDX-License-Identifier: LGPL-2.1-or-later
/* A record as a JSON object: what `perfctl reopen --json` writes of one, and whose it was and where
 * in the code. */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/print/print-record.h"
#include "client/perfctl/replay/script.h"

static void json_time(struct script *s, const struct trace_record *r, struct json *j)
{
	json_unsigned(j, "time", r->time);
	if (s->time == TIME_REAL && r->time)
		json_unsigned(j, "realtime", r->time + trace_info(s->in.trace)->realtime_offset);
	if (s->time == TIME_RELATIVE)
		json_unsigned(j, "relative", r->time > s->first ? r->time - s->first : 0);
}

static void json_symbol(const struct symbol *symbol, struct json *j)
{
	if (strcmp(symbol->name, "[unknown]")) {
		json_string(j, "sym", symbol->name);
		json_unsigned(j, "symoff", symbol->offset);
	}
	if (symbol->dso)
		json_string(j, "dso", symbol->dso->path);
}

static void json_chain(struct script *s, const struct trace_record *r, struct json *j)
{
	size_t n = script_frames(s, r);

	json_begin(j, "callchain", '[');
	for (size_t i = 0; i < n; i++) {
		json_begin(j, NULL, '{');
		json_address(j, "ip", s->frames[i].address);
		json_string(j, "space", s->frames[i].kernel ? "kernel" : "user");
		json_symbol(&s->frames[i].symbol, j);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_place(struct script *s, const struct trace_record *r, struct json *j)
{
	bool kernel = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct symbol symbol;

	json_address(j, "ip", r->sample.ip);
	if (!s->symbols)
		return;
	symbols_find(s->symbols, trace_processes(s->in.trace), r->pid, r->sample.ip, kernel,
		     &symbol);
	json_symbol(&symbol, j);
}

static void json_sample(struct script *s, const struct trace_record *r, struct json *j)
{
	const struct script_event *e = &s->events[r->event->index];
	uint64_t has = r->event->sample_type;

	json_string(j, "event", r->event->name);
	if (e->fields & FIELD_COMM)
		json_string(j, "comm", r->comm);
	if (has & PERF_SAMPLE_CPU)
		json_unsigned(j, "cpu", r->cpu);
	if (has & PERF_SAMPLE_TID) {
		json_signed(j, "pid", (int)r->pid);
		json_signed(j, "tid", (int)r->tid);
	}
	if (has & PERF_SAMPLE_TIME)
		json_time(s, r, j);
	if (has & PERF_SAMPLE_IP)
		json_place(s, r, j);
	if (has & PERF_SAMPLE_ADDR)
		json_address(j, "addr", r->sample.addr);
	if (has & PERF_SAMPLE_PERIOD)
		json_unsigned(j, "period", r->sample.period);
	if (has & PERF_SAMPLE_CALLCHAIN && !s->no_chains)
		json_chain(s, r, j);
	if (has & PERF_SAMPLE_RAW && r->event->format)
		payload_json(e->decoder, &r->sample, j);
}

static void json_map(const struct map *map, struct json *j)
{
	json_address(j, "start", map->start);
	json_unsigned(j, "size", map->end - map->start);
	json_unsigned(j, "offset", map->offset);
	json_string(j, "dso", map->dso->path);
}

static void json_other(struct script *s, const struct trace_record *r, struct json *j)
{
	static const char *const names[] = {
		[TRACE_COMM] = "COMM", [TRACE_FORK] = "FORK", [TRACE_EXIT] = "EXIT",
		[TRACE_MMAP] = "MMAP", [TRACE_LOST] = "LOST",
	};

	json_string(j, "record", names[r->kind]);
	json_string(j, "comm", r->comm);
	json_signed(j, "pid", (int)r->pid);
	json_signed(j, "tid", (int)r->tid);
	json_time(s, r, j);
	if (r->kind == TRACE_COMM)
		json_bool(j, "exec", r->exec);
	if (r->kind == TRACE_FORK || r->kind == TRACE_EXIT)
		json_signed(j, "ppid", (int)r->ppid);
	if (r->kind == TRACE_MMAP)
		json_map(r->map, j);
	if (r->kind == TRACE_LOST)
		json_unsigned(j, "lost", r->lost);
}

void script_print_json(struct script *s, const struct trace_record *r, FILE *f)
{
	struct json j = { .f = f };

	json_begin(&j, NULL, '{');
	if (r->kind == TRACE_SAMPLE)
		json_sample(s, r, &j);
	else
		json_other(s, r, &j);
	json_end(&j, '}');
	fputc('\n', f);
}
