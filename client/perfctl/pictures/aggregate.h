/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums over all records of a trace that reports and exports need: a tree of call chains for
 * each event, counts for each event, CPU and process. Memory grows with the number of different
 * items (stacks, processes), not with the records. Knows no output format.
 */
#pragma once

#include "client/perfctl/pictures/cpu-counts.h"
#include "client/perfctl/trace/symbols.h"
#include "client/perfctl/trace/trace.h"

#define AGGREGATE_CPUS COUNTED_CPUS

struct weight {
	uint64_t samples;
	uint64_t period; /* perf's weight; mostly 1 for each sample of a tracepoint */
};

/* A function in a chain: one for each name, file and start. */
struct frame {
	uint32_t index;		/* 0, 1, … */
	const char *symbol;	/* "[unknown]" if it has no name */
	const char *dso;	/* last part of the path; "[unknown]" if nothing is mapped there */
	const struct dso *file; /* NULL: nothing is mapped there */
	uint64_t start;
	bool kernel;
};

/*
 * A node of the tree, from the root along the calls. The root has neither comm nor frame; its
 * children are process names (comm set); below these are functions (frame set), the outermost
 * first. A sample belongs to the node of its innermost function; without any address it belongs to
 * the node of its comm.
 */
struct flame_node {
	uint32_t index; /* 0, 1, … over all trees; parents before children */
	const char *comm;
	uint32_t pid, tid; /* of a comm, if asked for; else 0 */
	const struct frame *frame;
	struct flame_node *parent, *children, *next;
	struct weight self;  /* of the samples of this node */
	struct weight total; /* including all nodes below; after aggregate_finish() */
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
	uint32_t pid;	  /* (uint32_t)-1: for tasks that had exited when it happened */
	const char *comm; /* the newest */
	uint64_t samples;
	uint64_t about;	   /* samples of others that name it */
	uint64_t *cpus;	   /* one bit for each CPU with samples */
	size_t n_words;	   /* of cpus */
	uint64_t run;	   /* ns on a CPU, from sched_switch; 0 without */
	uint64_t switches; /* sched_switch away from it */
};

/* Where a process comes from. */
struct lineage {
	uint32_t ppid;	  /* 0: not known, or none */
	const char *comm; /* the newest */
};

struct aggregate {
	struct event_sum *events; /* as the trace's, index for index */
	size_t n_events;
	size_t n_cpus;	 /* highest CPU seen, + 1; at most AGGREGATE_CPUS */
	uint64_t no_cpu; /* samples with no CPU, or an impossible one */

	struct process_sum *processes; /* after aggregate_finish(): sorted by time on CPUs, or (no
				        * switches) by samples */
	size_t n_processes;

	struct frame **frames; /* by index */
	size_t n_frames;
	struct flame_node **nodes; /* by index */
	size_t n_nodes;

	uint64_t samples;
	uint64_t nameless;    /* in processes without a name in the trace */
	uint64_t first, last; /* times of samples */
	uint64_t lost;	      /* records that the trace says are missing */
	uint64_t other;	      /* records of unknown meaning */
	uint64_t run;	      /* ns on all CPUs, from sched_switch, without idle */
	uint64_t idle;
	bool has_switches;
	bool has_about; /* aggregate_about() tells which processes samples name */
};

struct aggregate_options {
	size_t max_stack;    /* functions of a chain, from the innermost; 0: 127 */
	bool by_pid, by_tid; /* the tree has each process, each thread by itself */
	bool threads_alone;  /* a process has only the time of its added threads */
	bool about;	     /* for has_about */
};

/* The trace and symbols must outlive it. symbols NULL: only comms, no functions. -ENOMEM. */
int aggregate_new(struct trace *t, struct symbols *symbols, const struct aggregate_options *opts,
		  struct aggregate **ret);
void aggregate_free(struct aggregate *a);

static inline void aggregate_freep(struct aggregate **a)
{
	aggregate_free(*a);
}

/* Adds any record of the trace, in turn. ret_leaf (may be NULL): a sample's node; NULL for other
 * records. -ENOMEM. */
int aggregate_add(struct aggregate *a, const struct trace_record *record,
		  const struct flame_node **ret_leaf);

/* Counts it for its event and its CPU, but not for its process, and not in a tree. -ENOMEM. */
int aggregate_count(struct aggregate *a, const struct trace_record *record);

/* Passes a record that is not wanted: it counts for no process, but a switch says which task had
 * the CPU and which one gets it. -ENOMEM. */
int aggregate_pass(struct aggregate *a, const struct trace_record *record);

/* Counts the last sample also for a process that it names. -ENOMEM. */
int aggregate_about(struct aggregate *a, uint32_t pid);

/* The weight of a sample. If the sample has none, its event's, as in perf. */
uint64_t sample_period(const struct trace_record *record);

/* As far as the trace has told; NULL: nothing. */
const struct lineage *aggregate_lineage(const struct aggregate *a, uint32_t pid);

/* The process of a thread, if its records do not say (pid UINT32_MAX); UINT32_MAX: no others did. */
uint32_t aggregate_process(const struct aggregate *a, uint32_t pid, uint32_t tid);

/* After the last record: computes totals and sorts processes. */
void aggregate_finish(struct aggregate *a);

/* The next node of a tree in order, parents first; NULL: the end. Begin with the root. */
const struct flame_node *flame_next(const struct flame_node *node);
