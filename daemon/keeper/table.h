/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes, their threads, names and mappings, from their beginning to their end and for as long
 * after as memory lasts. Knows nothing of the records' source and destination. */
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
 * One mapping; lists are newest first. It never changes, so a child begins with its parent's list
 * by pointing at it. The list of a process that ran before us ends in a *root* without a file. Its
 * earlier mappings go behind the root once they are known, so that its children have them as well.
 */
struct map {
	struct map *older;
	struct blob *file;
	uint64_t time, start, size, offset;
	uint32_t refs;
	uint32_t prot : 8, flags : 24;
};

/* A list as it was before a compacting, from the newest mapping that a child began with. The
 * children hold it anyway; the process tells it once for all of them. */
struct former {
	struct former *next; /* newer ones are behind */
	struct map **list;   /* whose former state it is: process->first, or that of an EXEC */
	struct map *maps;    /* a reference */
};

enum change_kind { CHANGE_COMM, CHANGE_EXEC, CHANGE_NAMESPACES };

/* A thread's later name, or its EXEC. */
struct change {
	struct change *next;
	uint64_t time;
	enum change_kind kind;
	union {
		char comm[COMM_SIZE];
		struct blob *namespaces;
	};
	struct map *maps; /* EXEC: the mappings from then on */
};

struct thread {
	struct thread *hash_next;
	struct process *process;
	TAILQ_ENTRY(thread) link;   /* process->threads, or ->gone; not of the main one */
	TAILQ_ENTRY(thread) fading; /* table->gone; not of the main one */
	uint64_t started, ended;    /* 0: running */
	struct change *changes, *last;
	uint32_t tid, ptid;
	uint16_t n_changes;
	bool forked;	      /* its FORK was seen */
	bool seen;	      /* by the iterator (tasks.c) */
	char comm[COMM_SIZE]; /* first name; empty: unknown */
};

TAILQ_HEAD(threads, thread);

struct process {
	struct thread main;	   /* its tid is the pid */
	struct process *parent;	   /* a reference; NULL: not known */
	TAILQ_ENTRY(process) link; /* table->alive, or ->ended */
	struct threads threads,
		gone;	       /* running; ended, the oldest end first; without the main one */
	uint64_t ended;	       /* end of the last thread; 0: alive */
	uint64_t partial;      /* when older names were dropped; 0: never */
	uint64_t unmapped;     /* when mappings that a child may have were dropped; 0: never */
	struct map *inherited; /* what it began with: a position in `first` */
	struct map *first;     /* until its first EXEC */
	struct map **maps;     /* the list that grows: `first`, or that of an EXEC */
	struct map *root;      /* not forked, and not reported yet */
	struct former *formers;
	uint32_t ppid;
	uint32_t refs; /* the table's and its children's */
	uint32_t live; /* running threads */
	uint32_t n_gone;
	uint32_t n_maps, compact_at; /* in *maps, since the last compacting */
	uint32_t past_maps;	     /* in the lists before its last EXEC */
	bool forgotten;		     /* kept only for its children */
	bool lessened;		     /* it lacks something, and is counted so */
};

TAILQ_HEAD(processes, process);

/* A kernel symbol, BPF program, cgroup or loss: the record itself, and its end. */
struct notice {
	TAILQ_ENTRY(notice) link; /* table->notices, or ->over */
	LIST_ENTRY(notice) hash;  /* those in ->notices that can end */
	uint64_t time, ended;
	uint64_t key;
	uint16_t type, size;
	uint8_t bytes[];
};

TAILQ_HEAD(notices, notice);
LIST_HEAD(notice_bucket, notice);

/* A list is compacted at this length, and then again at twice its length after the last compacting
 * plus COMPACT_MORE. */
#define COMPACT_FIRST 1024
#define COMPACT_MORE 512

#define NOTICE_BUCKETS 4096
/* Records come nearly in order of time. A late one is moved back at most this far, so that a wrong
 * time costs no more than that. */
#define PLACES_BACK_MAX 1024
/* A quarter, so that a user who loads programs all the time does not displace everything else. */
#define NOTICE_BYTES_MAX(t) ((t)->memory.max / 4)

struct table {
	struct memory memory;
	struct blobs blobs;
	struct thread **buckets; /* by tid, the newest first */
	size_t n_buckets, n_threads;
	struct notice_bucket *notice_buckets;
	struct processes alive, ended; /* the oldest end first */
	struct threads gone;	       /* of all processes */
	struct notices notices, over;
	uint64_t notice_bytes;
	uint64_t n_processes, n_ended;
	uint64_t began, complete; /* CLOCK_MONOTONIC; began 0: nothing is kept */
	uint64_t now;		  /* time of the latest record */
	uint64_t first, last;	  /* bounds for the times of records */
	uint64_t lost, forgotten;
	uint64_t untimed;     /* records with an impossible time, or far too late */
	uint64_t unseen;      /* programs that came and went between two looks */
	uint64_t lost_told;   /* `lost` when the iterators last told what runs */
	uint64_t since_rings; /* since this time each CPU that was there has a ring */
	bool told;	      /* the iterators told what ran before */
	bool lacking;	      /* since then live processes were dropped */
};

int table_init(struct table *t, uint64_t max_memory);
void table_clear(struct table *t);

/* Applies one record to the table. */
void table_apply(struct table *t, const struct pp_record *record);
/* Likewise for bytes that pp_record_extent() has accepted. */
void table_apply_bytes(void *table, const uint8_t *bytes, size_t size);

/* Makes room until the limit holds (limit.c). */
void table_make_room(struct table *t);

/* ── threads and processes, for the parts of the table ─────────────────────────────────── */

/* The newest thread that has or had the number; NULL. */
struct thread *thread_find(const struct table *t, uint32_t tid);
/* The thread's present name. */
const char *thread_comm(const struct thread *thread);
void thread_set_comm(struct thread *thread, const char *comm, size_t size);
struct change *thread_change(struct table *t, struct thread *thread, enum change_kind kind,
			     uint64_t time);
void thread_drop_changes(struct table *t, struct thread *thread);

/* NULL: no memory. A new thread runs; parent may be NULL. */
struct process *process_new(struct table *t, uint32_t pid, uint64_t started,
			    struct process *parent);
/* A process that ran before us, or whose FORK was lost. A later report may complete it. */
struct process *process_found(struct table *t, uint32_t pid, uint64_t time);
struct thread *thread_new(struct table *t, struct process *p, uint32_t tid, uint64_t started);
void thread_end(struct table *t, struct thread *thread, uint64_t time);
void process_end(struct table *t, struct process *p, uint64_t time);
void process_revive(struct table *t, struct process *p);
/* Takes it out of the table; its children keep what they need of it. */
void process_forget(struct table *t, struct process *p);
/* Gives a reference back; p may be NULL. */
void process_put(struct table *t, struct process *p);
void thread_forget(struct table *t, struct thread *thread);
/* Marks the process's history before `time` as incomplete, and counts the process once. */
void process_lessen(struct table *t, struct process *p, uint64_t time);
/* Likewise for names, which children began with. */
void process_lessen_names(struct table *t, struct process *p, uint64_t time);

/* ── mappings ─────────────────────────────────────────────────────────────────────────── */

struct map *map_ref(struct map *m);
void map_put(struct table *t, struct map *m);
/* Puts a mapping on top of the process's list. file: a reference, which the map takes over.
 * -ENOMEM. */
int process_map(struct table *t, struct process *p, const struct map *what, struct blob *file);
/* Drops mappings that newer ones cover, and the oldest ones beyond the limit. */
void process_compact(struct table *t, struct process *p);
void process_drop_maps(struct table *t, struct process *p);
/* Drops the mappings before its last EXEC, and counts it as lessened. */
void process_drop_past_maps(struct table *t, struct process *p);
/* Marks the lists of children forked up to that time as no longer told with this process: of its
 * past lists only the present one's past is still told. */
void process_lessen_maps(struct table *t, struct process *p, uint64_t time);
void process_drop_formers(struct table *t, struct process *p);

/* ── notices ──────────────────────────────────────────────────────────────────────────── */

/* LOST and CGROUP. */
void table_notice(struct table *t, const struct pp_record *record);
/* KSYMBOL and BPF_EVENT, as loaded.c makes them: begins or ends the program (or its part) with that
 * key. Only the record's type, time, bytes and size count. */
void table_tell_program(struct table *t, const struct pp_record *record, uint64_t key, bool ends);
void notice_forget(struct table *t, struct notice *n);
