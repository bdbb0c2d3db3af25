/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parts of `perfctl report`: its options, and the sums that it prints.
 */
#pragma once

#include "client/perfctl/events/input.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/pictures/aggregate.h"

enum {
	SORT_COMM = 1,
	SORT_DSO = 2,
	SORT_SYMBOL = 4,
	SORT_DEFAULT = SORT_COMM | SORT_DSO | SORT_SYMBOL,
	SORT_PID = 8,
	SORT_TID = 16,
};

enum report_graph {
	GRAPH_NONE,
	GRAPH_CALLER, /* from the outermost function down */
	GRAPH_CALLEE, /* from the sampled function up to its callers */
};

struct report_options {
	unsigned sort;
	bool sorted;	      /* --sort was given */
	bool children;	      /* a function has the samples of those it called, too */
	unsigned graph;	      /* enum report_graph */
	double percent_limit; /* smaller parts are not shown; < 0: not given */
	double chain_limit;   /* the same for call chains */
	uint64_t max_stack, top;
	enum { WEIGHT_DEFAULT, WEIGHT_SAMPLES, WEIGHT_PERIOD } weight;
	const char *file; /* -i */
	const char *folded, *perfetto, *html;
	uint32_t latency; /* bits of the kinds (latency.h) that replace the report */
	bool findings;	  /* replace it, too */
	bool live;	  /* functions alone, on top of the terminal, also if there are none */
	uint64_t against; /* ns: compares the moment that is selected with as much before; 0: no */
	struct selection selection;
};

struct report {
	const struct report_options *o;
	const struct input *in;
	const struct trace_info *info;
	const struct aggregate *a;
	size_t width; /* of the terminal; 0: stdout is none */
};

/* ── report-hot.c: the tree's samples, grouped by --sort ── */

struct hot_row {
	const char *comm;  /* NULL: not sorted by it */
	uint32_t pid, tid; /* 0: not sorted by it; (uint32_t)-1: of a task that had exited */
	const struct frame *frame; /* any of the summed frames; NULL: they have no address */
	struct weight self, total;
};

struct hot {
	struct hot_row *rows; /* the hottest first */
	size_t n;
};

int hot_new(const struct event_sum *e, unsigned sort, bool children, struct hot *ret); /* -ENOMEM */
void hot_done(struct hot *h);

/* ── report-chains.c ── */

int report_chains(const struct report *report, const struct event_sum *e); /* -ENOMEM */

/* ── report-processes.c ── */

int report_processes(const struct report *report); /* -ENOMEM */

/* ── report-text.c, report-json.c: all of it on stdout; -ENOMEM ── */

int report_text(const struct report *report);
int report_json(const struct report *report);

/* The parts that latency reports begin with, too. */
int report_head(const struct report *report); /* -ENOMEM */
void report_head_json(struct json *j, const struct report *report);
/* As "stack", the outermost function first. */
void report_stack_json(struct json *j, const struct flame_node *leaf);

/* As "history"; null: unknown. */
void report_history_json(struct json *j, const struct trace_history *h);

double report_percent(uint64_t part, uint64_t whole);

/* ── report.c ── */

/* Writes what `perfctl report -i file --html page` writes, of a file that is open: it takes fd over.
 * Returns an exit code; has complained if it is not EXIT_OK. */
int report_html(struct call *call, int fd, const char *file, const char *page);
/* For top: the functions of the records of call's operands, since then (ns, CLOCK_MONOTONIC). Returns an exit
 * code; has complained if it is not EXIT_OK. No record is no failure. */
int report_functions(struct call *call, uint64_t since);
/* Whether a selection has selected no record; complains then. */
bool report_chose_none(const struct input *in, const struct selection *selection,
		       const struct aggregate *a);
void report_cleanup_symbols(struct symbols **s);
/* The CPUs with a bit set, "0-3,8"; the caller frees it. */
char *report_cpus(const uint64_t *bits, size_t n_words);
