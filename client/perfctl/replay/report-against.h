/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the parts of `perfctl report --against`. */
#pragma once

#include "client/perfctl/replay/compare-records.h"
#include "client/perfctl/replay/report.h"

/* A machine has some ten; a file can have one for each of its records. */
#define AGAINST_MAX 1000

struct report_against {
	struct report report;		 /* without sums */
	struct compare_records *records; /* NULL: nothing is compared */
	const struct compare *compared;
	const struct compare_change *changes;
	size_t n_changes; /* that are unusual, of which each is compared with each: at most AGAINST_MAX */
	size_t n_more;			       /* others that are unusual, behind these */
	size_t n_all;			       /* with those that are not, behind all */
	const struct finding *const *findings; /* as never before, the heaviest first */
	size_t n_findings;
	uint64_t asked;	   /* ns of the time before */
	uint64_t recorded; /* ns from the first record to the moment */
};

/* How a class is called. */
struct against_words {
	const char *key;  /* in JSON */
	const char *text; /* with %s: what */
};
extern const struct against_words against_words[COMPARE_CLASSES];

/* The CPU that has most of an event's change, if one stands out; UINT32_MAX: none. */
uint32_t against_cpu(const struct report_against *a, const struct compare_change *change);

/* Whether a change tells something that no other one tells better: the same time by samples, or in the
 * functions or events of a command, is told with that command. */
bool against_is_line(const struct report_against *a, const struct compare_change *change);
/* What is told with a line: its longest instance, and the function that has most of it; NULL: none. */
const struct compare_change *against_longest(const struct report_against *a,
					     const struct compare_change *change);
const struct compare_change *against_function(const struct report_against *a,
					      const struct compare_change *change);

/* The lines, the first max of them in ret; returns how many there are in all. */
size_t against_lines(const struct report_against *a, const struct compare_change **ret, size_t max);

/* ── report-against-text.c ── */

#define AGAINST_COLUMNS 6
extern const struct column against_columns[AGAINST_COLUMNS];

int report_against_text(const struct report_against *a);
/* Its parts: what is compared with what; findings, a line for each; a line's cells (-ENOMEM); what a line
 * may owe to records that are not there, line by line. */
void against_head(const struct report_against *a, FILE *f);
void against_findings(const struct report_against *a, FILE *f);
int against_cells(const struct report_against *a, const struct compare_change *change,
		  struct table *t);
void against_gaps(const struct report_against *a, FILE *f);

/* ── report-against-json.c ── */

int report_against_json(const struct report_against *a);
/* What it has of a change, into the object that was begun. */
void against_change_json(struct json *j, const struct report_against *a,
			 const struct compare_change *change);

/* ── report-against-page.c ── */

/* JSON: an object, with each line as above and its cells. The caller frees it. -ENOMEM. */
int against_page_text(const struct report_against *a, char **ret);

/* ── report-against.c ── */

/* Returns an exit code; has complained if it is not EXIT_OK. */
int report_against(struct call *call, const struct report_options *o);

/* The same of an input that the caller reads: it opens it with the selection of `window`, begins,
 * passes each of its records to ret->records, and at last judges. damaged: the rest of the input.
 * Exit codes, as above. */
struct selection against_window(const struct report_options *o);
int against_begin(struct input *in, const struct report_options *o, struct symbols *symbols,
		  struct report_against *ret);
int against_judge(struct report_against *a, bool damaged);
void against_done(struct report_against *a);
