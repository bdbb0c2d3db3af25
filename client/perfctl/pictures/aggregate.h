/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums over all records of a trace that pictures are made of: a tree of call chains for each
 * event, counts for each event, CPU and process. Its memory grows with what is different (stacks,
 * processes), not with the records. Knows how nothing of it is shown.
 */
#pragma once

#include "client/perfctl/pictures/cpu-counts.h"
#include "client/perfctl/trace/symbols.h"
#include "client/perfctl/trace/trace.h"

#define AGGREGATE_CPUS COUNTED_CPUS

struct weight {
	uint64_t samples;
	uint64_t period; /* what perf weighs by; of tracepoints mostly 1 a sample */
};

/* A function that was seen in a chain: one for each name, file and start. */
struct frame {
	uint32_t index;		/* 0, 1, … */
	const char *symbol;	/* "[unknown]" if it has no name */
	const char *dso;	/* last part of the path; "[unknown]" if nothing is mapped there */
	const struct dso *file; /* NULL: nothing is mapped there */
	uint64_t start;
	bool kernel;
};

/*
 * A place in the tree: who called whom, from the root on. The root has neither comm nor frame; its
 * children are process names (comm set); below these are functions (frame set), the outermost
 * first. A sample belongs to the node of its innermost function; without any address it belongs
 * to that of its comm.
 */
struct flame_node {
	uint32_t index; /* 0, 1, … over all trees; parents before children */
	const char *comm;
	const struct frame *frame;
	struct flame_node *parent, *children, *next;
	struct weight self;  /* of samples that belong here */
	struct weight total; /* with all below; after aggregate_finish() */
};

struct event_sum {
	const struct trace_event *event;
	struct weight weight;
	struct cpu_counts cpus; /* samples */
	uint64_t first, last;	/* times */
	bool has_chains;	/* some sample had more than one function */
	struct flame_node *root;
};

struct process_sum {
	uint32_t pid;	  /* (uint32_t)-1: of tasks that were no more when it happened */
	const char *comm; /* the newest */
	uint64_t samples;
	uint64_t *cpus;	   /* a bit for each CPU that it had samples on */
	size_t n_words;	   /* of cpus */
	uint64_t run;	   /* ns on a CPU, as sched_switch tells; 0 without */
	uint64_t switches; /* sched_switch away from it */
};

struct aggregate {
	struct event_sum *events; /* as the trace's, index for index */
	size_t n_events;
	size_t n_cpus;	 /* highest CPU seen, + 1; at most AGGREGATE_CPUS */
	uint64_t no_cpu; /* samples that name no CPU, or none there can be */

	struct process_sum *processes; /* after aggregate_finish(): the longest on CPUs first, or
					* (no switches) those with the most samples */
	size_t n_processes;

	struct frame **frames; /* by index */
	size_t n_frames;
	struct flame_node **nodes; /* by index */
	size_t n_nodes;

	uint64_t samples;
	uint64_t nameless;    /* of them: of processes whose name the trace does not tell */
	uint64_t first, last; /* times of samples */
	uint64_t lost;	      /* records that the trace says are missing */
	uint64_t other;	      /* records that mean nothing to us */
	uint64_t run; /* ns of all CPUs of which sched_switch tells who ran, idle left out */
	uint64_t idle;
	bool has_switches;
};

struct aggregate_options {
	size_t max_stack;   /* functions of a chain, from the innermost; 0: 127 */
	bool threads_alone; /* a process has the time of those of its threads that were added */
};

/* The trace and symbols must outlive it. symbols NULL: no functions, comms only. -ENOMEM. */
int aggregate_new(struct trace *t, struct symbols *symbols, const struct aggregate_options *opts,
		  struct aggregate **ret);
void aggregate_free(struct aggregate *a);

static inline void aggregate_freep(struct aggregate **a)
{
	aggregate_free(*a);
}

/* Any record of the trace, in turn. ret_leaf (may be NULL): of a sample, the node that it belongs
 * to; of others NULL. -ENOMEM. */
int aggregate_add(struct aggregate *a, const struct trace_record *record,
		  const struct flame_node **ret_leaf);

/* A record that is not wanted: it counts for nobody, but a switch says who had a CPU until then and
 * who has it now. -ENOMEM. */
int aggregate_pass(struct aggregate *a, const struct trace_record *record);

/* What a sample weighs. Where it does not say, it is, as perf has it, what its event says. */
uint64_t sample_period(const struct trace_record *record);

/* After the last: totals, and the order of processes. */
void aggregate_finish(struct aggregate *a);

/* The next node of a tree in order, parents first; NULL: it was the last. Begin with the root. */
const struct flame_node *flame_next(const struct flame_node *node);
