/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a trace's records to the items of a comparison: which item each record counts for. */
#pragma once

#include "client/perfctl/replay/compare.h"
#include "client/perfctl/replay/latency-records.h"

/* An event of the trace. */
struct compare_source {
	const struct trace_event *event;
	uint32_t name;
	struct trace_history history;
	uint64_t complete;   /* before that, its records are not complete */
	uint64_t per_sample; /* ns of CPU time; 0: it samples something else, or nothing */
	bool is_clock;	     /* each sample has its own */
	enum {
		SOURCE_OTHER,
		SOURCE_SWITCH,
		SOURCE_SIGNAL,
		SOURCE_VICTIM, /* oom:mark_victim */
	} meaning;
	struct decoder *decoder;
	const struct tep_format_field *fields[4];
	/* Records of each CPU: before, while they are complete, and in the moment. */
	struct cpu_counts before, now;
	uint32_t n_cpus; /* the highest with records, + 1; 0: it has none */
};

struct compare_records;
struct finding;

/* The grid's times are those of the input. chosen: --pid, --tid and -C; it learns which process a
 * thread belongs to. -ENOMEM. */
int compare_records_new(struct input *in, const struct compare_grid *grid,
			const struct selection *chosen, struct symbols *symbols,
			struct compare_records **ret);
void compare_records_free(struct compare_records *r);

/* Takes each record of the window in turn, of all threads and CPUs; compares, after the last one. 0,
 * -ENOMEM. */
int compare_records_add(struct compare_records *r, const struct selection *window,
			const struct trace_record *record);
int compare_records_finish(struct compare_records *r);
/* All of that. 0, -EBADMSG (the rest is damaged; has complained), -ENOMEM. */
int compare_records_read(struct compare_records *r, const struct selection *window);

/* Whether a sample is chosen. cpu UINT32_MAX: of any. */
bool compare_records_want(const struct compare_records *r, uint32_t pid, uint32_t tid,
			  uint32_t cpu);

const struct compare *compare_records_compared(const struct compare_records *r);
const struct compare_source *compare_records_sources(const struct compare_records *r,
						     size_t *ret_n);
/* Crashes, and the threads that kept others waiting, as never before, the heaviest first. Valid until r is freed. */
const struct finding *const *compare_records_findings(const struct compare_records *r,
						      size_t *ret_n);
/* There are none because the time before is too short for them. */
bool compare_records_lack_time(const struct compare_records *r);
/* The command that began most processes of this one; NULL: none has begun. */
const char *compare_records_parent(const struct compare_records *r, uint32_t comm);
uint64_t compare_records_n(const struct compare_records *r);	   /* selected in both times */
uint64_t compare_records_damaged(const struct compare_records *r); /* do not fit their formats */
