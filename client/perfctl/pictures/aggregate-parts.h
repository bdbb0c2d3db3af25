/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of an aggregate, for its files. */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/pictures/aggregate.h"
#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/trace/process-table.h"

#define CHAIN_MAX 127 /* functions of a chain; the kernel's default maximum */

/* The task on a CPU, as the last sched_switch said. */
struct running {
	bool known;
	uint32_t tid;
	uint64_t since;
};

struct aggregate_parts {
	struct aggregate a; /* first: the public part */
	struct trace *trace;
	struct symbols *symbols;
	size_t max_stack;
	bool threads_alone, by_pid, by_tid;

	/* aggregate-tree.c */
	struct hash frame_hash, node_hash, comm_hash;
	size_t cap_frames, cap_nodes;
	char **comms;
	size_t n_comms, cap_comms;

	/* aggregate-processes.c */
	struct hash process_hash, thread_hash;
	struct keytable lineage_of; /* by pid */
	struct lineage *lineages;
	size_t n_lineages;
	size_t cap_processes;
	struct thread {
		uint32_t tid, pid;
	} * threads;
	size_t n_threads, cap_threads;
	struct running *running; /* of each CPU */
	size_t n_running;
	struct decoders decoders;
	struct task_fields *fields; /* for each event */
};

/* Makes room for one more in an array of n items, at first for several. NULL: no memory. */
void *grow(void *items, size_t n, size_t *cap, size_t size);

/* ── aggregate-tree.c ── */

/* A copy of comm that is kept; NULL: no memory. */
const char *keep_comm(struct aggregate_parts *p, const char *comm);

/* The node of a sample; does not add its weight yet. -ENOMEM. */
int tree_place(struct aggregate_parts *p, struct event_sum *e, const struct trace_record *record,
	       struct flame_node **ret);
int tree_root(struct aggregate_parts *p, struct flame_node **ret);
void tree_totals(struct aggregate *a);
void tree_done(struct aggregate_parts *p);

/* ── aggregate-processes.c ── */

int sums_start(struct aggregate_parts *p);
/* wanted: counts for its process; otherwise only tells the task on a CPU. */
int sums_add(struct aggregate_parts *p, const struct trace_record *record, bool wanted);
/* Learns from a fork, or the new name of a process. -ENOMEM. */
int sums_lineage(struct aggregate_parts *p, const struct trace_record *record);
void sums_sort(struct aggregate *a);
void sums_done(struct aggregate_parts *p);
