/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the parts of `perfctl report --off-cpu` and its like, and of --findings. */
#pragma once

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

/* Returns an exit code; has complained if it is not EXIT_OK. */
int report_latency(struct call *call, const struct report_options *o);

/* ── report-findings.c ── */

struct findings;
struct latency_records;

/* Of what is recorded, the kinds that findings stand on. */
uint32_t report_findings_kinds(const struct latency_records *records);
/* After all facts. Returns an exit code; has complained if it is not EXIT_OK. */
int report_findings(const struct call *call, const struct report *report,
		    const struct latency_records *records, struct findings *f);
