/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring contract: the layout in memory of one CPU's ring of a persistent event.
 *
 * A ring is the value of a one-element BPF_MAP_TYPE_ARRAY (BPF_F_MMAPABLE, frozen): BPF
 * programs write it, user space can only map it PROT_READ. This file alone is enough to decode a
 * ring or a copy of one.
 *
 *   0                header_size             header_size + data_size
 *   ┌────────────────┬───────────────────────┬───────┐
 *   │ header, static │ data                  │ spill │
 *   │  live line 128 │ data_size = 2^n bytes │       │
 *   └────────────────┴───────────────────────┴───────┘
 *
 * The ring is written backward, as perf's write_backward rings are: `head` starts at 0 and
 * only decreases (modulo 2^64); the newest record begins at `head`, the next older one at
 * `head + its size`, and so on. The record at virtual position p lies at
 * data[p & (data_size - 1)], in one piece: a record that begins near the end of the data runs on
 * into the spill, which is as large as the largest record.
 *
 * Each record is a struct perf_event_header (type PERF_RECORD_SAMPLE) followed by the fields
 * that `sample_type` names, in the order perf_event_open(2) gives; its size is a multiple of
 * 8 and at most spill_size. Times are CLOCK_MONOTONIC nanoseconds. The CPU is the ring's.
 *
 * Writing, one record of n bytes (one program, which cannot nest on its CPU):
 *   reserve = head - n;  write the record;  records += 1;  head = reserve;
 * in this order as other CPUs see it. So the record that ends at virtual position e is whole
 * as long as   e <= reserve + data_size.
 * If reserve != head before, or head has changed after the record, there were two writers:
 * missed += 1 instead of this record, or for the other writer's, which this one has overwritten.
 *
 * Writing, if several programs write one ring or one program can interrupt itself (an event of
 * several sources, a uprobe): each writer reserves its place atomically, and only a writer that
 * finds no other one under way moves head, over everything written meanwhile.
 *   nest += 1 (atomic)
 *   p = reserve - n by compare-and-exchange; if it fails too often, or head - p would exceed
 *       data_size (it would overwrite others' records that are not committed yet):
 *       missed += 1 instead of a record. The record's time is read after reserve and before
 *       the exchange that succeeds: so times in a ring only go up.
 *   write the record at p;  records += 1 (atomic)
 *   again: r = reserve;  if (nest == 1) head = r;  nest -= 1 (atomic)
 *          if that made it 0 and reserve != head: nest += 1, again
 *   (Not `reserve != r`: two writers that finish at once may both have seen the other and not moved
 *    head.)
 * Everything at or above head is committed, so readers need not know which way was used.
 *
 * Reading while it is written, without losing records or pausing the writers:
 *   1. h = head (acquire)
 *   2. copy the data, or a part of it
 *   3. (load barrier) r = reserve
 *   4. records that begin in [h, ...) and end at or before r + data_size, and at or before 0
 *      (the position where the ring began), are whole; the others have been overwritten.
 * The positions are compared as distances from h: (e - h) <= data_size - (h - r).
 *
 * A reader must not trust anything here: a copy may come from anywhere.
 */
#pragma once

#include <linux/types.h>

#define PP_RING_MAGIC 0x676e69722d70702bULL /* "+pp-ring" in memory on little endian */
#define PP_RING_VERSION 2

#define PP_RING_LIVE_OFFSET 128
#define PP_RING_LIMIT_OFFSET 192
#define PP_RING_FORMAT_OFFSET 2048
#define PP_RING_PAGE 4096 /* header_size is a multiple of it, on every architecture */

#define PP_NAME_SIZE 64		/* of a name with its NUL: at most 63 bytes */
#define PP_EVENT_TEXT_SIZE 1024 /* of the event's text with its NUL */

#define PP_DATA_SIZE_MIN 4096ULL /* one page, as perf's smallest ring */
/* For one CPU's ring: the verifier lets a program access at most 512 MiB of a map, including the
 * spill and the size of a record. */
#define PP_DATA_SIZE_MAX (1ULL << 28)
#define PP_SPILL_SIZE_MAX 65536U /* a perf record's size is a __u16 */

/* How an event is recorded; the numbers are part of the contract. */
enum pp_recorder {
	PP_RECORDER_GENERIC = 1,  /* tracepoint program emitted from the event's format */
	PP_RECORDER_TP_BTF = 2,	  /* tp_btf program for a hot tracepoint */
	PP_RECORDER_OVERFLOW = 3, /* program on a sampling event's overflow */
	PP_RECORDER_PROBE = 4,	  /* kprobe or uprobe program, emitted */
	PP_RECORDER_AUX = 5,	  /* none: the PMU traces into AUX areas (auxtrace.h) */
};

/* A ring's state, for readers that have it mapped. The engine writes it, through a program, after
 * the fact: a hint to look again, never a promise about the next record. */
enum pp_ring_state {
	PP_RING_RUNNING = 0,
	PP_RING_PAUSED = 1,
	PP_RING_RETIRED = 2, /* replaced by another set of rings; open the event again */
	PP_RING_DELETED = 3, /* the event is gone */
};

/* The words that the recording program writes, on a cache line of their own. */
struct pp_ring_live {
	__u64 head;    /* where the newest record begins */
	__u64 reserve; /* how far down the program may be writing; == head if it is not */
	__u64 records; /* written since the ring was made */
	__u64 missed; /* overflow recorder: the counter's periods without a sample, except `idle` */
	__u64 counter;	  /* overflow recorder: the counter at the newest sample */
	__u32 state;	  /* enum pp_ring_state */
	__u32 generation; /* reserved for triggers: 0 */
	/* rings with nesting writers: how many are under way; else 0. In a copy 1 if `records` may count some that
	 * are above head */
	__u64 nest;
	/* overflow recorder, clocks: periods without a sample while the CPU idled; 0: none, or an
	 * older recorder */
	__u64 idle;
};

/* Limits between an event and its record, on the next cache line; touched only if the event has a
 * rate limit or wakes readers. */
struct pp_ring_limit {
	__u64 limited;	 /* records that max_rate dropped */
	__u64 window;	 /* when the second that in_window counts began; jiffies in ns */
	__u64 in_window; /* records let through in it */
	__u64 woken;	 /* when readers were last woken; CLOCK_MONOTONIC, ns */
	/* overflow recorder: when `missed` last grew; CLOCK_MONOTONIC, ns; 0: never, or an older
	 * recorder */
	__u64 missed_time;
	__u64 reserved[3];
};

struct pp_ring_header {
	/*   0 */ __u64 magic;
	/*   8 */ __u32 version;
	/*  12 */ __u32 header_size; /* bytes before the data */
	/*  16 */ __u64 data_size;   /* bytes, a power of two */
	/*  24 */ __u32 spill_size;  /* bytes; also the largest record's size */
	/*  28 */ __u32 cpu;
	/*  32 */ __u64 event_id;
	/*  40 */ __u64 sample_type; /* PERF_SAMPLE_*; n_sources > 1: PERF_SAMPLE_IDENTIFIER alone,
				      * and the record's source says the rest */
	/*  48 */ __u32 clockid;     /* CLOCK_MONOTONIC */
	/*  52 */ __u32 recorder;    /* enum pp_recorder */
	/*  56 */ __u32 attr_size;   /* bytes used of attr */
	/*  60 */ __u32
		format_size;	 /* bytes at PP_RING_FORMAT_OFFSET: the tracepoint's format; or 0 */
	/*  64 */ __u64 created; /* CLOCK_REALTIME ns */
	/*  72 */ __u64 created_mono; /* the same instant by CLOCK_MONOTONIC, ns */
	/*  80 */ __u8 boot_id[16];
	/*  96 */ __u32 n_sources; /* events that share the ring: 1, or see proto/catalog.h */
	/* 100 */ __u32 set;	   /* number of the ring set: 1, and 1 more each resize */
	/* 104 */ __u64 reserved0[3];
	/* 128 */ struct pp_ring_live live;
	/* 192 */ struct pp_ring_limit limit;
	/* 256 */ char ns[PP_NAME_SIZE]; /* the namespace */
	/* 320 */ char name[PP_NAME_SIZE];
	/* 384 */ char event[PP_EVENT_TEXT_SIZE]; /* in perf's syntax */
	/* 1408 */ __u8 attr[256];		  /* struct perf_event_attr of the first source */
	/* 1664 */ __u8 reserved2[384];
	/* 2048: format text */
};

#ifndef __bpf__
#include <stddef.h>
_Static_assert(sizeof(struct pp_ring_live) == 64, "live words");
_Static_assert(offsetof(struct pp_ring_header, live) == PP_RING_LIVE_OFFSET, "live line");
_Static_assert(sizeof(struct pp_ring_limit) == 64, "limit words");
_Static_assert(offsetof(struct pp_ring_header, limit) == PP_RING_LIMIT_OFFSET, "limit line");
_Static_assert(offsetof(struct pp_ring_header, ns) == 256, "names");
_Static_assert(offsetof(struct pp_ring_header, event) == 384, "event text");
_Static_assert(offsetof(struct pp_ring_header, attr) == 1408, "attr");
_Static_assert(sizeof(struct pp_ring_header) == PP_RING_FORMAT_OFFSET, "static part");

/* Bytes of the whole ring, to map; also the value_size of its map. */
static inline __u64 pp_ring_size(__u32 header_size, __u64 data_size, __u32 spill_size)
{
	return header_size + data_size + spill_size;
}

/*
 * Copies the static header of the ring at `ring` (`size` readable bytes) into *ret and checks every
 * field of the copy against the contract and against size. Later code trusts only the copy; its
 * live words are meaningless.
 *
 * Returns 0; -EBADMSG (not a ring, or damaged); -EPROTONOSUPPORT (made by a newer version).
 */
int pp_ring_check(const void *ring, size_t size, struct pp_ring_header *ret);
#endif
