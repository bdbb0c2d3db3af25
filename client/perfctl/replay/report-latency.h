/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the parts of `perfctl report --off-cpu` and its like, and of --findings. */
#pragma once

#include "client/perfctl/replay/latency-records.h"
#include "client/perfctl/replay/latency.h"
#include "client/perfctl/replay/report.h"

/* How each kind is called. */
struct latency_words {
	const char *option, *key; /* "off-cpu", "off_cpu" */
	const char *title;
	const char *label;     /* the column's title */
	const char *label_key; /* "state" */
	const char *needs;     /* events, for -e of `perfctl create` */
	bool of_processes;     /* a row has a process */
};
extern const struct latency_words latency_words[LATENCY_KINDS];

/* histories: of each kind. */
int report_latency_text(const struct report *report, const struct latency *l, uint32_t kinds,
			const struct trace_history *histories);
int report_latency_json(const struct report *report, const struct latency *l, uint32_t kinds,
			const struct trace_history *histories);

/* The latencies of a page, made while its records are read: those of a window, which is settled. */
struct latency_page {
	struct latency_records records;
	struct latency *latency; /* NULL: nothing to match, or a selection that cuts pairs apart */
	uint32_t kinds;
};
int latency_page_open(struct input *in, const struct report_options *o,
		      const struct selection *window, struct latency_page *ret); /* -ENOMEM */
int latency_page_add(struct latency_page *p, const struct selection *window,
		     const struct trace_record *record, const struct flame_node *leaf);
/* JSON: an array with an object of each kind; NULL: none. The caller frees it. -ENOMEM. */
int latency_page_text(struct latency_page *p, const struct report_options *o,
		      const struct selection *window, char **ret);
void latency_page_done(struct latency_page *p);

/* In the form of `perfctl report --json`. */
void report_latency_kind_json(struct json *j, const struct latency_words *w,
			      const struct latency_sums *s, const struct trace_history *history,
			      uint64_t top);

/* Returns an exit code; has complained if it is not EXIT_OK. */
int report_latency(struct call *call, const struct report_options *o);

/* ── report-findings.c ── */

struct finding;
struct findings;
struct latency_records;

/* One of them: `number` is its place, end that of the time, ns. */
void report_finding_text(FILE *f, const struct finding *g, size_t number, uint64_t end);
void report_finding_json(struct json *j, const struct finding *g);

/* The recorded kinds that findings stand on. */
uint32_t report_findings_kinds(const struct latency_records *records);
/* After all facts. Returns an exit code; has complained if it is not EXIT_OK. */
int report_findings(const struct call *call, const struct report *report,
		    const struct latency_records *records, struct findings *f);
