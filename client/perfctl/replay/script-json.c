// SPDX-License-Identifier: LGPL-2.1-or-later
/* A record as a JSON object, as of `perfctl reopen --json`, with its process and its place in the
 * code. */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/replay/script.h"

static void json_sample(struct script *s, const struct trace_record *r, struct json *j)
{
	const struct script_event *e = &s->events[r->event->index];
	bool kernel = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct record record = {
		.event = r->event->name,
		.comm = e->fields & FIELD_COMM ? r->comm : NULL,
		.cpu = r->cpu,
		.pid = r->pid,
		.tid = r->tid,
		.time = script_time_of(s, r->time),
		.shown = r->event->sample_type,
		.sample = &r->sample,
		.frames = s->frames,
		.decoder = e->decoder,
	};
	struct symbol place;

	if (s->no_chains)
		record.shown &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	if (!r->event->format)
		record.shown &= ~(uint64_t)PERF_SAMPLE_RAW;
	if (record.shown & PERF_SAMPLE_IP && s->symbols) {
		symbols_find(s->symbols, trace_processes(s->in.trace), r->pid, r->sample.ip, kernel,
			     &place);
		record.place = &place;
	}
	if (record.shown & PERF_SAMPLE_CALLCHAIN)
		record.n_frames = script_frames(s, r);
	sample_json(&record, j);
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
	struct record_time time = script_time_of(s, r->time);

	json_string(j, "record", names[r->kind]);
	json_string(j, "comm", r->comm);
	json_signed(j, "pid", (int)r->pid);
	json_signed(j, "tid", (int)r->tid);
	time_json(&time, j);
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
