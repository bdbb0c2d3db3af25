/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long things took, from pairs of records: threads off a CPU or waiting for one, system calls,
 * block requests, interrupt handlers. Takes what records say, in order of time, as calls; knows
 * neither files nor output.
 *
 * An interval counts if both its records are there and nothing says that others of it are missing in
 * between. The rest is counted by the reason. Every duration is kept, in 8 bytes, so that
 * percentiles are exact: a file's index takes four times as much. (Each first sector of block requests
 * takes 120 bytes.)
 */
#pragma once

#include "client/perfctl/pictures/aggregate.h"

enum latency_kind {
	LATENCY_OFF_CPU,
	LATENCY_WAKEUPS,
	LATENCY_SYSCALLS,
	LATENCY_BLOCK,
	LATENCY_IRQ,
	LATENCY_KINDS,
};

#define LATENCY_COMM_SIZE 16 /* with its NUL, as in the kernel */

struct latency_who {
	uint32_t tid;
	char comm[LATENCY_COMM_SIZE];
};

/* Where a record was written, and which thread the CPU ran. */
struct latency_now {
	uint64_t time;
	uint32_t cpu;
	struct latency_who who;
	const struct flame_node *chain; /* NULL: it has no call chain */
};

/* ── Results ── */

struct latency_interval {
	uint64_t begin, end; /* ns */
	bool is_open;	     /* it had not ended by the last record, which is `end` then */
	bool knows_disks;    /* all block requests since its beginning are recorded */
	uint32_t cpu;	     /* of its end; UINT32_MAX: unknown */
	struct latency_who who;
	uint32_t pid;	   /* of who; its tid if the process is unknown */
	const char *label; /* the state, cause, call, request or handler */
	bool was_woken;
	struct latency_who waker;
	uint64_t woken; /* ns; in LATENCY_OFF_CPU: it waited for a CPU from then on; 0: unknown */
	const struct flame_node *chain; /* of its beginning */
};

/* All intervals of one process and label; of LATENCY_BLOCK and LATENCY_IRQ of one label. */
struct latency_row {
	uint32_t pid;
	const char *comm; /* "" without a process */
	const char *label;
	uint64_t *all; /* ns, ascending */
	size_t n;
	uint64_t sum;
};

/* The intervals that began with the same call chain. */
struct latency_place {
	const struct flame_node *chain;
	uint64_t n, sum, max;
};

struct latency_list {
	struct latency_interval *all; /* the longest first */
	size_t n;
};

struct latency_sums {
	struct latency_row *rows; /* the worst first */
	size_t n_rows;
	uint64_t n, sum;	      /* of all rows */
	struct latency_place *places; /* the longest sum first */
	size_t n_places;
	struct latency_list worst;
	struct latency_list open; /* that did not end; those that have lasted longest */
	uint64_t n_open;
	uint64_t begun_before; /* only their ends are recorded */
	uint64_t missing;      /* records in between are missing */
};

/* ── Matching; all return 0 or -ENOMEM ── */

/* A thread ran on a CPU, from a switch to the next one, with no record missing in between. */
struct latency_run {
	uint64_t begin, end; /* ns */
	uint32_t cpu, pid;   /* pid: as in latency_interval */
	struct latency_who who;
	bool sleeps; /* behind it; else it could have run on */
	bool exits;  /* it has ended */
};

/* Is told each one in turn; returns 0 or -ENOMEM. */
struct latency_watcher {
	int (*ran)(void *arg, const struct latency_run *run);
	int (*ended)(void *arg, enum latency_kind kind, const struct latency_interval *one);
	void *arg;
};

struct latency_options {
	uint32_t kinds; /* a bit for each that is wanted */
	size_t top;	/* of worst and open */
	/* sched_wakeup is recorded: sched_waking only says who wakes. */
	bool has_wakeups;
	/* Intervals that begin before do not count: records of some CPU are missing there. */
	uint64_t complete[LATENCY_KINDS];
	/* What has not ended lasts until then, where events were copied one after another. 0: until the last
	 * record. */
	uint64_t until[LATENCY_KINDS];
	/* Which ends count, by thread and CPU; NULL: all. */
	bool (*wants)(const void *arg, uint32_t pid, uint32_t tid, uint32_t cpu);
	const void *arg;
	const struct latency_watcher *watcher; /* NULL: none */
	/* Takes each interval instead of keeping it for latency_sums(); it is valid during the call.
	 * 0 or -ENOMEM. */
	int (*take)(void *to, enum latency_kind kind, const struct latency_interval *one);
	void *to;
};

struct latency;

int latency_new(const struct latency_options *o, struct latency **ret);
void latency_free(struct latency *l);

static inline void latency_freep(struct latency **l)
{
	latency_free(*l);
}

/* Of any record: a thread's process and name. pid (uint32_t)-1, comm "?": unknown. */
int latency_thread(struct latency *l, uint32_t pid, uint32_t tid, const char *comm);
int latency_born(struct latency *l, uint32_t pid, uint32_t tid);
void latency_died(struct latency *l, uint32_t tid);

/* Records of a kind are missing before this one: whatever had begun may have ended since. */
void latency_lost(struct latency *l, enum latency_kind kind);

int latency_switch(struct latency *l, const struct latency_now *now, uint64_t prev_state,
		   const struct latency_who *prev, const struct latency_who *next);
int latency_wakeup(struct latency *l, const struct latency_now *now,
		   const struct latency_who *wakee, bool is_new);
int latency_waking(struct latency *l, const struct latency_now *now,
		   const struct latency_who *wakee);
/* name: of the call. An exit whose call is not known has none. */
int latency_call(struct latency *l, const struct latency_now *now, const char *name);
int latency_return(struct latency *l, const struct latency_now *now, const char *name);

struct latency_request {
	uint32_t device; /* dev_t in the kernel's form */
	uint64_t sector, n_sectors;
	const char *operation; /* "WS", … */
};
int latency_insert(struct latency *l, const struct latency_now *now,
		   const struct latency_request *request);
int latency_issue(struct latency *l, const struct latency_now *now,
		  const struct latency_request *request);
int latency_complete(struct latency *l, const struct latency_now *now,
		     const struct latency_request *request);

/* A handler of (hard) interrupt `number`, or of softirq `number`; its exit has no name. */
struct latency_handler {
	bool soft;
	uint32_t number;
	const char *name;
};
int latency_entry(struct latency *l, const struct latency_now *now,
		  const struct latency_handler *handler);
int latency_exit(struct latency *l, const struct latency_now *now,
		 const struct latency_handler *handler);

/* After the last record: end is its time. */
int latency_finish(struct latency *l, uint64_t end);
const struct latency_sums *latency_sums(const struct latency *l, enum latency_kind kind);

/* The smallest duration that at least this share (per 1000) of a row's intervals do not exceed. */
uint64_t latency_percentile(const struct latency_row *row, unsigned per_1000);
