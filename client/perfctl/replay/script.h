/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the parts of `perfctl script`. */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/events/input.h"
#include "client/perfctl/print/print-record.h"
#include "client/perfctl/trace/symbols.h"

/* perf's limit is 127 by default. */
#define SCRIPT_STACK_MAX 1024

/* perf's names for the bits of enum script_field, in their order. */
#define SCRIPT_FIELDS "comm tid pid time cpu event trace ip sym symoff dso addr period tod"

enum script_field {
	FIELD_COMM = 1 << 0,
	FIELD_TID = 1 << 1,
	FIELD_PID = 1 << 2,
	FIELD_TIME = 1 << 3,
	FIELD_CPU = 1 << 4,
	FIELD_EVENT = 1 << 5,
	FIELD_TRACE = 1 << 6,
	FIELD_IP = 1 << 7,
	FIELD_SYM = 1 << 8,
	FIELD_SYMOFF = 1 << 9,
	FIELD_DSO = 1 << 10,
	FIELD_ADDR = 1 << 11,
	FIELD_PERIOD = 1 << 12,
	FIELD_TOD = 1 << 13,
};

enum script_time { TIME_MONO, TIME_REAL, TIME_RELATIVE };

struct script_event {
	const struct trace_event *event;
	unsigned fields;
	struct decoder *decoder; /* NULL: it has no format, or an unknown one */
};

struct script {
	const char *file;   /* -i */
	const char *fields; /* -F */
	struct selection selection;
	unsigned time; /* enum script_time */
	bool nanoseconds, no_chains, no_symbols, keep_mangled, json;
	bool show_tasks, show_maps, show_lost;
	uint64_t max_stack;

	struct input in;
	struct symbols *symbols; /* NULL: --no-symbols */
	struct decoders decoders;
	struct script_event *events;
	size_t n_events;
	int name_width; /* of the longest event's name */
	uint64_t first; /* the first time in the input, for TIME_RELATIVE */
	uint64_t n;	/* printed records */
	struct symbols_frame frames[SCRIPT_STACK_MAX];
};

/* ── script-fields.c ── */

/* Selects the fields to print, by -F and by the fields that the events have. Returns an exit code;
 * has complained. */
int script_choose_fields(struct script *s, const struct call *call);

/* ── script-print.c, script-json.c ── */

void script_print(struct script *s, const struct trace_record *record, FILE *f);
void script_print_json(struct script *s, const struct trace_record *record, FILE *f);

/* The frames of a record, in s->frames; without symbols: the addresses. */
size_t script_frames(struct script *s, const struct trace_record *record);

/* A record's time in the form that --time selects. */
struct record_time script_time_of(const struct script *s, uint64_t time);
