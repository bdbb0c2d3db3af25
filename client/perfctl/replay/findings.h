/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What stands out in a time: crashes, waits for a CPU and for whom, threads that ran or slept far longer
 * than they use to, disks, memory, processes begun in a loop. Takes what records say, in order of time,
 * as calls, and knows neither files nor output.
 *
 * A finding names who did it and who had to wait, how often and how long. They are ordered by the time
 * that they cost others. Memory grows with the records: 24 bytes for each switch, 104 for each sleep.
 */
#pragma once

#include "client/perfctl/replay/latency.h"

enum finding_kind {
	FINDING_CRASH, /* culprit died of signal `number`; victim: who sent it, if another did */
	FINDING_OOM, /* the machine or a cgroup had no memory left, and the kernel killed culprit */
	FINDING_CPU, /* victim waited for a CPU on which culprit ran */
	FINDING_BURST,	 /* culprit ran, which otherwise sleeps soon */
	FINDING_SLEEP,	 /* victim slept, which is otherwise woken soon, until culprit woke it */
	FINDING_PEER,	 /* the same, where culprit is of another process */
	FINDING_ALONE,	 /* victim slept, which is otherwise woken soon, and no thread woke it */
	FINDING_STOPPED, /* victim was stopped; culprit sent the signal, or let it go on (number 0) */
	FINDING_HANG,	 /* victim slept at the end, and never so long before; usual: the longest */
	FINDING_HELD,	 /* victim was ready to run, its CPU idle, and it did not run */
	FINDING_DISK,	 /* culprit made most requests to `device`; victim was blocked */
	FINDING_BLOCKED, /* victim was blocked; by what is not recorded */
	FINDING_MEMORY,	 /* victim had to free memory before it got some */
	FINDING_FORKS,	 /* culprit began n processes named as victim */
	FINDING_USAGE,	 /* culprit had most of the CPU time */
	FINDING_KINDS,
};

struct finding_party {
	const char *comm; /* NULL: there is none */
	/* The thread; the process, where several of its threads have this name; 0: several processes have. */
	uint32_t id;
	uint32_t process; /* 0: several */
};

struct finding {
	enum finding_kind kind;
	struct finding_party culprit, victim;
	/* Who woke victim, but had to wait for culprit itself; comm NULL: culprit did. */
	struct finding_party through;
	uint64_t n;	   /* how often */
	uint64_t max, sum; /* ns */
	uint64_t usual;	   /* ns; the median of the same thread; 0: unknown */
	uint64_t begin,
		end;	  /* the longest; of a crash the moment, of forks the first and the last */
	unsigned percent; /* of the time for which the culprit ran; of requests; of all CPU time */
	int number;	  /* signal */
	bool is_open;	  /* the longest had not ended by the last record */
	bool is_blocked;  /* it was in state D */
	const char *device;
	/* Where culprit was, then: the innermost function that most samples have; NULL: no samples, or not
	 * one of the first hundred. */
	const struct flame_node *where;
	double weight; /* by which they are ordered */
};

struct findings;

int findings_new(struct findings **ret); /* -ENOMEM */
void findings_free(struct findings *f);

static inline void findings_freep(struct findings **f)
{
	findings_free(*f);
}

/* ── Facts; all return 0 or -ENOMEM ── */

/* arg: struct findings. */
int findings_ran(void *arg, const struct latency_run *run);
int findings_ended(void *arg, enum latency_kind kind, const struct latency_interval *one);

int findings_sample(struct findings *f, const struct latency_now *now);
int findings_fork(struct findings *f, const struct latency_now *now,
		  const struct latency_who *parent, const struct latency_who *child);
int findings_exit(struct findings *f, const struct latency_now *now, const struct latency_who *who);
/* code: siginfo's si_code. */
int findings_signal(struct findings *f, const struct latency_now *now,
		    const struct latency_who *target, int number, int code);
int findings_victim(struct findings *f, const struct latency_now *now,
		    const struct latency_who *victim);
int findings_reclaim(struct findings *f, const struct latency_now *now, bool begins);

/* After the last fact, of records from begin to end: the heaviest first. They stay until f is freed. */
int findings_finish(struct findings *f, uint64_t begin, uint64_t end, const struct finding **ret,
		    size_t *ret_n);
