/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of a page being written, for its files. */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/pictures/html-tables.h"
#include "client/perfctl/pictures/html.h"

enum html_column {
	COLUMN_TIME,
	COLUMN_CPU,
	COLUMN_EVENT,
	COLUMN_TASK,
	COLUMN_TEXT,
	COLUMN_NODE,
	COLUMN_PERIOD,
	COLUMN_NEXT,
	COLUMN_ABOUT,
	N_COLUMNS,
};

#define HTML_NO_CPU AGGREGATE_CPUS /* for records with no CPU, or an impossible one */

struct html_event {
	struct decoder *decoder; /* NULL: no format, or none that can be read */
	const struct tep_format_field *next_pid, *next_comm; /* of sched_switch */
	uint64_t n;
};

struct html_lost {
	uint64_t time, lost;
	uint32_t cpu;
};

struct html {
	FILE *f;
	struct trace *trace;
	struct decoders decoders;
	struct html_event *events; /* as the trace's */
	bool has_about;

	/* the block that is being filled */
	struct bytes columns[N_COLUMNS];
	struct texts texts;
	size_t n;

	/* of all records */
	struct texts comms;
	struct tasks tasks;
	uint64_t records, base, time; /* time: of the newest record */
	uint64_t nameless;
	bool cpus[HTML_NO_CPU + 1];
	struct html_lost *lost;
	size_t n_lost, cap_lost;
	uint64_t sum_lost;

	FILE *line; /* a record's text, in memory */
	char *text;
	size_t text_size;
};

/* ── html-info.c ── */

int html_write_nodes(struct html *h, const struct aggregate *a);
int html_write_info(struct html *h, const struct aggregate *a, const struct html_about *about);
