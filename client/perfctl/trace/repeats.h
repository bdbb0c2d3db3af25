/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Occurrences of a tracepoint that several events of a file have recorded, as two presets may: what is counted or
 * matched must see each once.
 *
 * Two records are of one occurrence if they have the same bytes, are of one CPU, and no other record of the
 * tracepoint lies between them. An occurrence that an interrupt cut in two is not found so, and is counted twice.
 */
#pragma once

#include "client/perfctl/trace/process-table.h"
#include "client/perfctl/trace/trace.h"

struct repeats {
	/* of each event: the first one of its tracepoint, + 1; 0: it is the only one */
	uint32_t *group;
	uint32_t *member;
	struct told *told; /* of each CPU and group that had a record */
	size_t n_told;
	struct keytable by_place; /* indices of these */
};

/* wanted: of each event, whether its records come. 0; -ENOMEM. */
int repeats_init(struct repeats *r, const struct trace *trace, const bool *wanted);
void repeats_done(struct repeats *r);

/* Of a sample, in order of time: whether another event's record of the occurrence was there before. 1; 0; -ENOMEM. */
int repeats_look(struct repeats *r, const struct trace_record *record);
