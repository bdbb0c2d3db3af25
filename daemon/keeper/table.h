/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who ran: processes, their threads, and what both were called and had mapped, from their
 * beginnings to their ends and for as long after as the memory lasts. Knows nothing of where
 * records come from and where they go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/keeper/blob.h"
#include "daemon/keeper/memory.h"
#include "proto/perf-record.h"

#define COMM_SIZE 16 /* with its NUL */

/*
 * One mapping, newest first. It never changes, so that a child begins with its parent's list by
 * pointing at it. Those of a process that was there before us end in a *root*, without a file:
 * what it had mapped comes behind it, once that is known, and its children have that as well.
 */
struct map {
	struct map *older;
	struct blob *file;
	uint64_t time, start, size, offset;
	uint32_t refs;
	uint32_t prot : 8, flags : 24;
};

/*
 * A list as it was before a compacting, from the newest mapping on that a child began with. The
 * children hold it anyway; with the process it is told once for all of them.
 */
struct former {
	struct former *next; /* the newer ones are behind */
	struct map **list;   /* which was so before: process->first, or that of an EXEC */
	struct map *maps;    /* a reference */
};

enum change_kind { CHANGE_COMM, CHANGE_EXEC, CHANGE_NAMESPACES };

/* What a thread became, after what it was at first. */
struct change {
	struct change *next;
	uint64_t time;
	enum change_kind kind;
	union {
		char comm[COMM_SIZE];
		struct blob *namespaces;
	};
	struct map *maps; /* EXEC: from there on */
};

struct thread {
	struct thread *hash_next;
	struct process *process;
	TAILQ_ENTRY(thread) link;   /* process->threads, or ->gone; not of the main one */
	TAILQ_ENTRY(thread) fading; /* table->gone; not of the main one */
	uint64_t started, ended;    /* 0: it runs */
	struct change *changes, *last;
	uint32_t tid, ptid;
	uint16_t n_changes;
	bool forked;	      /* its FORK was seen */
	bool seen;	      /* by the iterator (tell.c) */
	char comm[COMM_SIZE]; /* at first; empty: not known */
};

TAILQ_HEAD(threads, thread);

struct process {
	struct thread main;	   /* its tid is the pid */
	struct process *parent;	   /* a reference; NULL: not known */
	TAILQ_ENTRY(process) link; /* table->alive, or ->ended */
	struct threads threads,
		gone;	   /* that run, that have ended, the oldest end first; not the main one */
	uint64_t ended;	   /* the last of its threads; 0: it is alive */
	uint64_t partial;  /* when names of it had to go; 0: never */
	uint64_t unmapped; /* when mappings had to go that a child may have begun with; 0: never */
	struct map *inherited; /* what it began with: a place in `first` */
	struct map *first;     /* until its first EXEC */
	struct map **maps;     /* the list that grows: `first`, or that of an EXEC */
	struct map *root;      /* not forked, and not told of yet */
	struct former *formers;
	uint32_t ppid;
	uint32_t refs; /* the table's and its children's */
	uint32_t live; /* threads that run */
	uint32_t n_gone;
	uint32_t n_maps, compact_at; /* in *maps, since the last compacting */
	uint32_t past_maps;	     /* in the lists before its last EXEC */
	bool forgotten;		     /* only children want it, for what it was */
	bool lessened;		     /* something of it had to go, and was counted */
};

TAILQ_HEAD(processes, process);

/* A symbol or program of the kernel's, a cgroup, a loss: the record itself, and its end. */
struct notice {
	TAILQ_ENTRY(notice) link; /* table->notices, or ->over */
	LIST_ENTRY(notice) hash;  /* of those in ->notices that something may end */
	uint64_t time, ended;
	uint64_t key;
	uint16_t type, size;
	uint8_t bytes[];
};

TAILQ_HEAD(notices, notice);
LIST_HEAD(notice_bucket, notice);

/* A list is compacted when it has so many mappings, and again when it is twice what it was after
 * the last time, and so many more. */
#define COMPACT_FIRST 1024
#define COMPACT_MORE 512

#define NOTICE_BUCKETS 4096
/* Records come nearly in order of time. So far one goes back for the place of one that does not: it
 * stays where that ends, so that no wrong time costs more than that. */
#define PLACES_BACK_MAX 1024
/* A quarter, so that who loads programs all the time does not put out all others. */
#define NOTICE_BYTES_MAX(t) ((t)->memory.max / 4)

struct table {
	struct memory memory;
	struct blobs blobs;
	struct thread **buckets; /* by tid, the newest first */
	size_t n_buckets, n_threads;
	struct notice_bucket *notice_buckets;
	struct processes alive, ended; /* the oldest end first */
	struct threads gone;	       /* of whatever process */
	struct notices notices, over;
	uint64_t notice_bytes;
	uint64_t n_processes, n_ended;
	uint64_t began, complete; /* CLOCK_MONOTONIC; began 0: nothing is kept */
	uint64_t now;		  /* of the latest record */
	uint64_t first, last;	  /* no record is of before that, or after it */
	uint64_t lost, forgotten;
	uint64_t untimed;     /* records whose time cannot be, or that came much too late */
	uint64_t unseen;      /* programs that came and went between two looks */
	uint64_t lost_told;   /* `lost`, when it was told last what runs */
	uint64_t since_rings; /* since then every CPU that there was has a ring */
	bool told;	      /* of what ran before */
	bool lacking;	      /* processes that live had to go since then */
};

int table_init(struct table *t, uint64_t max_memory);
void table_clear(struct table *t);

/* What the record says happens in the table. */
void table_apply(struct table *t, const struct pp_record *record);
/* The same of bytes that pp_record_extent() has found. */
void table_apply_bytes(void *table, const uint8_t *bytes, size_t size);

/* Makes room until the limit holds (limit.c). */
void table_make_room(struct table *t);

/* ── threads and processes, for the parts of the table ─────────────────────────────────── */

/* The newest that has or had the number; NULL. */
struct thread *thread_find(const struct table *t, uint32_t tid);
/* What the thread is called now. */
const char *thread_comm(const struct thread *thread);
void thread_set_comm(struct thread *thread, const char *comm, size_t size);
struct change *thread_change(struct table *t, struct thread *thread, enum change_kind kind,
			     uint64_t time);
void thread_drop_changes(struct table *t, struct thread *thread);

/* NULL: no memory. A new thread runs; parent may be NULL. */
struct process *process_new(struct table *t, uint32_t pid, uint64_t started,
			    struct process *parent);
/* One that was there before us, or whose FORK was lost. What else it had may still be told. */
struct process *process_found(struct table *t, uint32_t pid, uint64_t time);
struct thread *thread_new(struct table *t, struct process *p, uint32_t tid, uint64_t started);
void thread_end(struct table *t, struct thread *thread, uint64_t time);
void process_end(struct table *t, struct process *p, uint64_t time);
void process_revive(struct table *t, struct process *p);
/* Out of the table; what its children need stays until they are gone. */
void process_forget(struct table *t, struct process *p);
/* Gives a reference back; p may be NULL. */
void process_put(struct table *t, struct process *p);
void thread_forget(struct table *t, struct thread *thread);
/* Something of it is missing from now on, of before that time. It is counted, once. */
void process_lessen(struct table *t, struct process *p, uint64_t time);
/* The same of names, which children began with. */
void process_lessen_names(struct table *t, struct process *p, uint64_t time);

/* ── mappings ─────────────────────────────────────────────────────────────────────────── */

struct map *map_ref(struct map *m);
void map_put(struct table *t, struct map *m);
/* On top of the process's list. file: a reference, which becomes the map's. -ENOMEM. */
int process_map(struct table *t, struct process *p, const struct map *what, struct blob *file);
/* Drops what newer mappings have covered, and the oldest of too many. */
void process_compact(struct table *t, struct process *p);
void process_drop_maps(struct table *t, struct process *p);
/* Those that it had before its last EXEC, and counts it as lessened. */
void process_drop_past_maps(struct table *t, struct process *p);
/* Those who were forked up to that time have lists that are not told with this process any more:
 * of those that it had before, only what the present one was goes on to be told. */
void process_lessen_maps(struct table *t, struct process *p, uint64_t time);
void process_drop_formers(struct table *t, struct process *p);

/* ── notices ──────────────────────────────────────────────────────────────────────────── */

/* LOST and CGROUP. */
void table_notice(struct table *t, const struct pp_record *record);
/*
 * KSYMBOL and BPF_EVENT, as loaded.c makes them: what a program or piece of it with that key was
 * begun with, or ends it. Of the record type, time, bytes and size count.
 */
void table_tell_program(struct table *t, const struct pp_record *record, uint64_t key, bool ends);
void notice_forget(struct table *t, struct notice *n);
