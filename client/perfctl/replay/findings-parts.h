/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of findings, for their files. */
#pragma once

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/replay/findings.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/macro.h"

#define FINDINGS_MS UINT64_C(1000000)
#define FINDINGS_NONE UINT32_MAX
#define FINDINGS_DEVICES 256

/* A thread of one id and name; the next one with its id is another. */
struct finding_thread {
	uint32_t tid, pid;
	char comm[LATENCY_COMM_SIZE];
	uint32_t name;		     /* index into names */
	uint64_t ran;		     /* in all */
	uint64_t burst, burst_begin; /* since it slept last; 0: it has not run since */
	uint32_t last_cpu;	     /* on which it ran; UINT32_MAX: unknown */
	uint32_t parent;	     /* thread that began it; FINDINGS_NONE: unknown */
	uint32_t stopper; /* thread that sent it SIGSTOP last, until now; FINDINGS_NONE: unknown */
	uint64_t exited;  /* when; 0: it has not */
	bool lacked_memory; /* the kernel killed it for that */
	bool is_dead; /* its end was told; of a process's first thread, from findings_judge() on */
	uint64_t reclaims; /* since then it frees memory; 0: it does not */
};

struct finding_name {
	char comm[LATENCY_COMM_SIZE];
	uint64_t ran; /* all its threads, from findings_judge() on */
};

/* A thread ran on a CPU. */
struct finding_run {
	uint64_t begin, end;
	uint32_t thread;
};

struct finding_cpu {
	struct finding_run *runs; /* in order of time */
	size_t n;
};

enum stretch_kind {
	STRETCH_WAIT,	   /* for a CPU, after a wakeup */
	STRETCH_PREEMPTED, /* for a CPU, when another thread had got it */
	STRETCH_BURST,	   /* running, from one sleep to the next */
	STRETCH_SLEEP,	   /* in state S */
	STRETCH_ASLEEP,	   /* the same, at the end */
	STRETCH_BLOCKED,   /* in state D */
	STRETCH_STOPPED,   /* in state T */
	STRETCH_RECLAIM,   /* freeing memory */
};

/* Something that a thread did, from begin to end. */
struct stretch {
	uint64_t begin, end;
	uint64_t ns;		/* of a burst: only while it ran */
	uint32_t thread, waker; /* waker: FINDINGS_NONE: unknown */
	uint32_t cpu,
		cpu_before; /* of its end; on which the thread had run before; UINT32_MAX: unknown */
	uint32_t stopper;   /* thread that had stopped the process last; FINDINGS_NONE: unknown */
	uint8_t kind;	    /* enum stretch_kind */
	bool is_open;	    /* it had not ended by the last record */
	bool knows_disks;   /* all requests since its beginning are recorded */
};

struct finding_sample {
	uint64_t time;
	uint32_t thread;
	const struct flame_node *leaf;
};

struct finding_fork {
	uint64_t time;
	uint32_t parent, child;
};

struct finding_signal {
	uint64_t time;
	uint32_t target, sender; /* threads; sender FINDINGS_NONE: the kernel, or itself */
	int number;
	bool out_of_memory;
};

struct finding_request {
	uint32_t device; /* index into devices */
	uint32_t name;
	uint32_t tid;
	uint64_t begin, end;
};

/* A time in which a disk had requests, and how long such times were before it. */
struct disk_time {
	uint64_t begin, end, before;
};

/* The kind of a row that is not told by itself: victim was blocked while a disk had requests. */
#define TALLY_ON_DISK FINDING_KINDS
#define TALLY_KINDS (FINDING_KINDS + 1)

/* What is alike is one row: same kind, and same names of culprit and victim. */
struct tally {
	struct finding finding;
	uint32_t culprit, victim; /* names, FINDINGS_NONE */
	uint64_t overlap;	  /* ns for which the culprit did it */
	double weight;
	uint32_t thread; /* the culprit's, of the longest */
};

struct findings {
	struct finding_thread *threads;
	size_t n_threads;
	struct keytable by_tid;
	struct finding_name *names;
	size_t n_names;
	struct hash name_hash;
	struct finding_cpu *cpus;
	size_t n_cpus;
	struct stretch *stretches;
	size_t n_stretches;
	uint32_t *in_time; /* stretches, each thread's and kind's in order of time */
	struct finding_sample *samples;
	size_t n_samples;
	struct finding_fork *forks;
	size_t n_forks;
	struct finding_signal *signals;
	size_t n_signals;
	struct finding_request *requests;
	size_t n_requests;
	struct disk_time *disk_times; /* in order of time, apart from each other */
	size_t n_disk_times;
	char (*devices)[32];
	size_t n_devices; /* at most FINDINGS_DEVICES; others are not told */

	uint64_t begin, end;
	uint64_t recorder_ran; /* all threads that are named as this recorder's */
	/* Runs that may still be looked at. A file can claim that all waits overlap all runs; of those that
	 * nobody made up, a wait has a few. */
	uint64_t looks;
	struct tally *tallies;
	size_t n_tallies;
	struct keytable tally_of[TALLY_KINDS];
	struct finding *result;
};

/* ── findings-times.c: what threads did in a time ── */

/* Tells how long each thread ran on the CPU from begin to end. Stops at an error, which it returns. */
int findings_who_ran(struct findings *f, uint32_t cpu, uint64_t begin, uint64_t end,
		     int (*each)(void *arg, uint32_t thread, uint64_t ns), void *arg);
/* ns for which it ran on any CPU. */
uint64_t findings_ran_for(struct findings *f, uint32_t thread, uint64_t begin, uint64_t end);
/* Where the thread was, by its samples; NULL: there are none. */
const struct flame_node *findings_where(const struct findings *f, uint32_t thread, uint64_t begin,
					uint64_t end);

/* Orders what findings_at() and findings_on_disk() look at. -ENOMEM. */
int findings_index(struct findings *f);
/* The thread's stretch of that kind around a time; NULL: none. */
const struct stretch *findings_at(const struct findings *f, uint32_t thread, enum stretch_kind kind,
				  uint64_t time);
/* The thread's stretches of that kind, which is not the first, from the shortest on: their number. begin: of the
 * earliest. */
size_t findings_group(const struct findings *f, uint32_t thread, enum stretch_kind kind,
		      const struct stretch **ret, uint64_t *ret_begin);
/* ns from begin to end for which the thread waited for CPUs; ret_cpu: for that one longest. */
uint64_t findings_waited(struct findings *f, uint32_t thread, uint64_t begin, uint64_t end,
			 uint32_t *ret_cpu);
/* ns from begin to end in which a disk had requests. */
uint64_t findings_on_disk(const struct findings *f, uint64_t begin, uint64_t end);

/* ── findings-causes.c: who is behind a sleep ── */

/* Whether the waker of this sleep did it, rather than an interrupt that came while it ran. */
bool findings_is_deliberate(struct findings *f, const struct stretch *s);
/* Whether this sleep was a wait for the end of the waker, which is of another process. */
bool findings_awaits_end(const struct findings *f, const struct stretch *s);
/* The thread for which the waker itself waited, most of that time; else the waker. */
uint32_t findings_root(struct findings *f, const struct stretch *s);
/* The thread that ran longest on the CPU meanwhile, and (ret_all) how long all did; FINDINGS_NONE: none. */
uint32_t findings_longest_on(struct findings *f, const struct stretch *s, uint32_t cpu,
			     uint64_t *ret_ns, uint64_t *ret_all);

/* How long threads with this one's name ran on the CPU meanwhile; *party becomes them. */
uint64_t findings_named_on(struct findings *f, const struct stretch *s, uint32_t cpu,
			   uint32_t thread, struct finding_party *party);

/* ── findings-judge.c ── */

/* What is shorter is no finding by itself. */
#define FINDINGS_OUTLIER (10 * FINDINGS_MS)
/* Nor a preemption: others took their turn. */
#define FINDINGS_PREEMPTION (3 * FINDINGS_OUTLIER)

/* Fills tallies. */
int findings_judge(struct findings *f);

/* The row; other rows may move. -ENOMEM. */
int findings_tally(struct findings *f, enum finding_kind kind, uint32_t culprit, uint32_t victim,
		   struct tally **ret);
/* The thread is one of those that *p tells: see struct finding_party. */
void findings_take(const struct findings *f, struct finding_party *p, uint32_t thread);
void findings_count(struct tally *t, const struct stretch *s, uint64_t ns);
uint32_t findings_process(const struct finding_thread *t);
/* The first thread of its process, if it is known; else the thread. */
uint32_t findings_first_thread(const struct findings *f, uint32_t thread);
bool findings_same_process(const struct findings *f, uint32_t a, uint32_t b);
/* Kernel threads do what others have left to them: that they wait hurts nobody at once. They have no mark of
 * their own in records. */
bool findings_serves_others(const char *comm);

/* ── findings-stretches.c ── */

/* Judges all stretches, and sorts them. -ENOMEM. */
int findings_judge_stretches(struct findings *f);
