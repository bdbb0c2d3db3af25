/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of an aggregate: what its files share.
 */
#pragma once

#include "client/perfctl/decode/decoders.h"
#include "client/perfctl/pictures/aggregate.h"
#include "client/perfctl/pictures/hash.h"

#define CHAIN_MAX 127 /* functions of a chain, as the kernel gives at most by default */

/* Who runs on a CPU, as sched_switch told last. */
struct running {
	bool known;
	uint32_t tid;
	uint64_t since;
};

struct aggregate_parts {
	struct aggregate a; /* first: what others see */
	struct trace *trace;
	struct symbols *symbols;
	size_t max_stack;
	bool threads_alone;

	/* aggregate-tree.c */
	struct hash frame_hash, node_hash, comm_hash;
	size_t cap_frames, cap_nodes;
	char **comms;
	size_t n_comms, cap_comms;

	/* aggregate-processes.c */
	struct hash process_hash, thread_hash;
	size_t cap_processes;
	struct thread {
		uint32_t tid, pid;
	} * threads;
	size_t n_threads, cap_threads;
	struct running *running; /* of each CPU */
	size_t n_running;
	struct decoders decoders;
	struct switch_fields *switches; /* of each event: where sched_switch's fields are */
};

/* Makes room for one more in an array of n items; at first for some. NULL: no memory. */
void *grow(void *items, size_t n, size_t *cap, size_t size);

/* ── aggregate-tree.c ── */

/* comm's text, kept; NULL: no memory. */
const char *keep_comm(struct aggregate_parts *p, const char *comm);

/* The node of a sample; its weight is not counted yet. -ENOMEM. */
int tree_place(struct aggregate_parts *p, struct event_sum *e, const struct trace_record *record,
	       struct flame_node **ret);
int tree_root(struct aggregate_parts *p, struct flame_node **ret);
void tree_totals(struct aggregate *a);
void tree_done(struct aggregate_parts *p);

/* ── aggregate-processes.c ── */

int sums_start(struct aggregate_parts *p);
/* wanted: it counts for its process; if not, it says who was on a CPU, at most. */
int sums_add(struct aggregate_parts *p, const struct trace_record *record, bool wanted);
void sums_sort(struct aggregate *a);
void sums_done(struct aggregate_parts *p);
