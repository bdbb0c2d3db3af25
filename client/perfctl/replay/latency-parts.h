/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of the matching, for its files. */
#pragma once

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/replay/latency.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/macro.h"

#define LATENCY_NOBODY UINT32_MAX

/* An interval that has begun, or none. */
struct begin {
	bool open;
	uint64_t time;
	uint32_t lost; /* latency.lost of its kind then */
	uint32_t label;
	const struct flame_node *chain;
};

/* A thread, as far as records told. Another one with its id, later, is another struct. */
struct latency_thread {
	uint32_t pid; /* UINT32_MAX: unknown */
	struct latency_who who;
	bool fresh;	       /* born in these records, and has done nothing yet */
	bool has_never_called; /* born in these records, and without a system call since */
	enum {
		SCHED_UNKNOWN,
		SCHED_RUNNING,
		SCHED_OFF,
	} sched;
	struct begin off, wait, call;
	bool was_woken; /* since it went off */
	struct latency_who waker;
	uint64_t woken;
	uint64_t early_at; /* woken while it ran; 0: not */
	struct latency_who early;
};

#define HANDLERS_NESTED 16

struct latency_cpu {
	bool known;    /* which thread runs, unless records were lost since then: */
	uint64_t lost; /* what latency_lost() had counted */
	uint32_t tid;
	uint64_t since; /* it runs */
	struct running_handler {
		bool soft;
		uint32_t number;
		struct begin begin;
	} handlers[HANDLERS_NESTED];
	size_t n_handlers;
};

struct request {
	uint32_t device;
	uint64_t sector;
	uint64_t left; /* sectors that are not complete */
	struct latency_who who;
	struct begin queued, issued;
};

/* The intervals of one thread (or LATENCY_NOBODY) and label. */
struct group {
	uint32_t thread, label;
	uint64_t *all;
	size_t n;
};

struct latency_counts {
	struct latency_sums sums;
	struct group *groups;
	size_t n_groups;
	struct keytable by_key;	  /* groups by thread and label */
	struct keytable by_chain; /* places */
	uint32_t lost;
};

struct latency {
	struct latency_options o;
	struct latency_counts counts[LATENCY_KINDS];
	struct latency_thread *threads;
	size_t n_threads;
	struct keytable by_tid; /* the newest with this id */
	char **labels;
	size_t n_labels;
	struct hash label_hash;
	struct latency_cpu *cpus;
	size_t n_cpus;
	struct request *requests;
	size_t n_requests;
	size_t max_requests; /* if there are so many, those that are complete are forgotten */
	struct hash request_hash;
};

/* ── latency.c ── */

bool latency_has(const struct latency *l, enum latency_kind kind);
/* The index of a text that is kept. */
int latency_label(struct latency *l, const char *text, uint32_t *ret);
/* A new thread if the id is new. who: NULL: its name is not known. */
int latency_find_thread(struct latency *l, uint32_t tid, const struct latency_who *who,
			uint32_t *ret);
/* The process of a thread, by its index; its tid if the process is unknown. */
uint32_t latency_process(const struct latency *l, uint32_t thread);
/* NULL: no memory, or no CPU. */
struct latency_cpu *latency_cpu(struct latency *l, uint32_t cpu);

/* ── latency-sums.c ── */

struct begin latency_begin(const struct latency *l, enum latency_kind kind,
			   const struct latency_now *now, uint32_t label);
/* What the list shows beside the times. */
struct latency_about {
	uint32_t thread; /* index, or LATENCY_NOBODY: `who` and no row of a process */
	const struct latency_who *who;
	const struct latency_who *waker; /* NULL: none */
	uint64_t woken;
};
/* Ends what has begun, and counts it; b is no longer open. */
int latency_end(struct latency *l, enum latency_kind kind, struct begin *b,
		const struct latency_now *now, const struct latency_about *about);
/* An end without a beginning, or (missing) a beginning without an end. */
void latency_count(struct latency *l, enum latency_kind kind, uint32_t thread,
		   const struct latency_now *now, bool missing);
/* At the end, which is this kind's if that is earlier. */
uint64_t latency_until(const struct latency *l, enum latency_kind kind, uint64_t end);
int latency_still_open(struct latency *l, enum latency_kind kind, const struct begin *b,
		       uint64_t end, const struct latency_about *about);
int latency_sort(struct latency *l, enum latency_kind kind);
void latency_counts_done(struct latency_counts *c);

/* ── latency-sched.c, latency-block.c, latency-irq.c: what has not ended ── */

int latency_sched_finish(struct latency *l, uint64_t end);
int latency_block_finish(struct latency *l, uint64_t end);
int latency_irq_finish(struct latency *l, uint64_t end);
