/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of the reading, for its files. */
#pragma once

#include "client/perfctl/pictures/aggregate.h"
#include "client/perfctl/replay/compare-findings.h"
#include "client/perfctl/replay/compare-records.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/macro.h"

/* The task on a CPU, as the last sched_switch said. */
struct compare_running {
	bool known;
	uint32_t tid;
	uint64_t since;
	char comm[LATENCY_COMM_SIZE];
};

/* A process that has begun, and has not ended. */
struct compare_birth {
	uint32_t pid;	 /* 0: free */
	uint32_t parent; /* a name; of a free one: the index + 1 of the next free one */
	uint64_t time;
};

/* A signal that ends a process which does not expect it. */
struct compare_fault {
	uint32_t pid, name, comm;
	uint64_t time, complete;
};

/* Samples of a node of the tree. */
struct compare_node {
	struct compare_series series;
	uint32_t comm;
	uint64_t complete;
};

struct compare_records {
	struct input *in;
	const struct selection *chosen;
	struct compare *c;
	struct compare_source *sources;
	size_t n_sources;
	uint64_t n, damaged, end;
	uint64_t first; /* sideband is complete from the first sample on */

	struct compare_running *running; /* of each CPU */
	size_t n_running;
	struct keytable pids; /* the process of each thread */

	/* compare-processes.c */
	struct compare_birth *births;
	size_t n_births;
	uint32_t free_birth;	  /* index + 1; 0: none */
	struct keytable birth_of; /* by pid */
	struct keytable parents;  /* by command: the parent of the newest */

	/* compare-fatal.c */
	struct compare_fault *faults;
	size_t n_faults;
	struct keytable faulty; /* processes that have any, or had */

	/* compare-functions.c */
	struct aggregate *tree;
	struct compare_node *nodes; /* by index */
	size_t n_nodes;
	const struct flame_node *leaf; /* of the present record's chain; NULL: none */

	/* compare-latency.c */
	struct latency_records pairs;
	struct latency *latency;
	struct compare_findings
		*findings; /* NULL: some threads are selected, which tell half of them */
};

/* ── compare-records.c ── */

/* The CPU time that a sample stands for. The period of a clock may have been changed meanwhile. */
static inline uint64_t compare_time(const struct compare_source *s,
				    const struct trace_record *record)
{
	return s->is_clock && record->sample.period ? record->sample.period : s->per_sample;
}

/* The name of a thread's process, with its own name if it has one; fallback: if both are unknown. 0,
 * COMPARE_NOBODY or -ENOMEM. */
int compare_command(struct compare_records *r, uint32_t pid, uint32_t tid, const char *fallback,
		    uint32_t *ret);
#define COMPARE_NOBODY 1 /* the idle task, or perfpersist itself */

/* The fields of the present record, in the order of its source's. */
uint32_t compare_field_number(const struct compare_source *s, size_t i);
void compare_field_text(const struct compare_source *s, size_t i, char ret[LATENCY_COMM_SIZE]);

/* The process of a thread; its own number if that is not known. */
uint32_t compare_process_of(const struct compare_records *r, uint32_t pid, uint32_t tid);

/* ── compare-fatal.c: signals of faults, and what the OOM killer ends ── */

int compare_fatal_add(struct compare_records *r, const struct compare_source *s, uint64_t time);
/* Of any record that is no sample. */
void compare_fatal_forked(struct compare_records *r, const struct trace_record *record);
int compare_fatal_finish(struct compare_records *r);

/* ── compare-processes.c: what sideband says of beginnings and ends ── */

int compare_processes_add(struct compare_records *r, const struct trace_record *record);
int compare_processes_finish(struct compare_records *r);

/* ── compare-functions.c ── */

int compare_functions_add(struct compare_records *r, const struct compare_source *s,
			  const struct trace_record *record, uint32_t comm);
int compare_functions_finish(struct compare_records *r);

/* ── compare-latency.c ── */

int compare_latency_begin(struct compare_records *r);
