/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes a record of a hot tracepoint: PERF_SAMPLE_TID | TIME | RAW, the raw part a payload of
 * payload.h. Owns everything around the payload's fields; knows no tracepoint.
 *
 * A tp_btf program cannot nest on its CPU: the kernel skips and counts the inner run.
 *
 * These are the hottest paths, and the order of things serves speed. One look-up tells whether the
 * CPU is recorded at all. Stores are as wide as the layout allows. The clock comes last: reading it
 * waits for all earlier loads, and meanwhile the stores complete. The kernel's call of the program
 * and the clock cost the most.
 */
#pragma once

#include "daemon/engine/bpf/hot.h"
#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/payload.h"
#include "daemon/engine/bpf/ring.bpf.h"

const volatile struct hot_constants hot_constants = {};

/*
 * Holds a record while its filter runs, or its trigger fires; as large as the largest record of the event. One for each
 * CPU is enough, since the program cannot nest.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} scratch SEC(".maps");

/* The kernel writes this for a string that is NULL. */
static const volatile char no_string[] = "(null)";

struct hot {
	struct ring_place place;
	__u64 size; /* of the record without its identifier */
	void *at;   /* where it is written; 8 bytes further if the record has an identifier */
};

/* What has become of a record. */
enum hot_end {
	HOT_NONE,
	HOT_WRITTEN,
	HOT_PLACELESS, /* there was to be one */
	HOT_BEYOND,    /* it is for the next side */
};

static __always_inline void hot_go_on(const __u64 *ctx, enum hot_end end)
{
	if (end == HOT_WRITTEN || end == HOT_PLACELESS)
		ring_tell(ctx);
	else if (OPTION(ring_constants, closes) && end == HOT_BEYOND)
		ring_go_on(ctx);
}

#define HAS(hot, option) RING_OPTION(&(hot)->place, option)

static __always_inline struct hot hot_here(bool plain)
{
	return (struct hot){ .place = { .ring = ring_here(), .plain = plain } };
}

/*
 * A program contains two variants: one for events without options, which must be as fast as
 * possible, and one for all others. The verifier looks at one of the two, and removes the other.
 * The body returns what has become of the record.
 */
#define RECORDER(tracepoint, name)                                              \
	static __always_inline int name##_record(const __u64 *ctx, bool plain); \
	SEC("tp_btf/" #tracepoint)                                              \
	int name(const __u64 *ctx)                                              \
	{                                                                       \
		if (!OPTION(ring_constants, extended))                          \
			name##_record(ctx, true);                               \
		else                                                            \
			hot_go_on(ctx, name##_record(ctx, false));              \
		return 0;                                                       \
	}                                                                       \
	static __always_inline int name##_record(const __u64 *ctx, bool plain)

/* Payloads lie 4 bytes off an 8-byte boundary; volatile keeps each store in one piece. */
#define PUT_AT(type, at, offset, value) (*(volatile type *)((at) + (offset)) = (value))

#define FIELD_OFFSET(payload, field) (HOT_PAYLOAD_OFFSET + __builtin_offsetof(payload, field))
#define FIELD_TYPE(payload, field) __typeof__(((payload *)0)->field)
#define PUT(hot, payload, field, value) \
	PUT_AT(FIELD_TYPE(payload, field), (hot)->at, FIELD_OFFSET(payload, field), value)
#define PUT_COMM(hot, payload, field, task) put_comm((hot)->at + FIELD_OFFSET(payload, field), task)

/* Where the padding begins: behind the last field of 4 bytes or more. */
#define FIELDS_END(payload, last) \
	(FIELD_OFFSET(payload, last) + (sizeof(FIELD_TYPE(payload, last)) & ~3))

/* Opens a record of a fixed layout whose last field (of 4 bytes or more) is `last`. False: there is
 * no record. */
#define BEGIN(hot, payload, last, task)                            \
	(hot_begin(hot, HOT_RECORD_SIZE(sizeof(payload)), task) && \
	 zero((hot)->at, FIELDS_END(payload, last), HOT_RECORD_SIZE(sizeof(payload))))

static __always_inline bool zero(void *at, __u64 from, __u64 to)
{
	if (from & 4) {
		PUT_AT(__u32, at, from, 0);
		from += 4;
	}
	if (from < to)
		PUT_AT(__u64, at, from, 0);
	return true;
}

static __always_inline __u64 whole_size(const struct hot *hot)
{
	return HAS(hot, identified) ? hot->size + HOT_IDENTIFIER_SIZE : hot->size;
}

/* Whether the CPU is not recorded, which is counted. With a filter, hot_reserve() counts it
 * instead, once the filter has agreed. */
static __always_inline bool hot_is_nowhere(const struct hot *hot)
{
	if (hot->place.ring || HAS(hot, filtered))
		return false;
	ring_count_ringless();
	return true;
}

/* Reserves room in the ring. NULL: there is no record, and that is counted. */
static __always_inline void *hot_reserve(struct hot *hot)
{
	if (HAS(hot, filtered) && !hot->place.ring) {
		ring_count_ringless();
		return NULL;
	}
	if (HAS(hot, limited) && !ring_admits(&hot->place))
		return NULL;
	return ring_reserve(&hot->place, whole_size(hot));
}

/* Opens the record at once in its place, or in the scratch map if something comes first: a filter, a trigger, or
 * its time. */
static __always_inline void *hot_open(struct hot *hot)
{
	__u32 zero = 0;
	void *at;

	if (!HAS(hot, filtered) && !HAS(hot, closes))
		return hot_reserve(hot);
	at = bpf_map_lookup_elem(&scratch, &zero);
	if (!at)
		return NULL;
	barrier_var(at); /* else the compiler adds first, which 6.1's verifier does not allow */
	return at + HOT_SCRATCH_OFFSET;
}

static __always_inline bool hot_begin(struct hot *hot, __u64 size, const struct task_struct *task)
{
	__u32 pid = task->pid, tgid = task->tgid;
	__u64 raw_size = size - HOT_PAYLOAD_OFFSET;
	void *at;

	hot->size = size;
	at = hot_open(hot);
	if (!at)
		return false;
	PUT_AT(__u64, at, 0,
	       PERF_RECORD_SAMPLE | (__u64)PERF_RECORD_MISC_KERNEL << 32 | whole_size(hot) << 48);
	if (HAS(hot, identified)) {
		PUT_AT(__u64, at, 8, RING_CONSTANT(source_id));
		at += HOT_IDENTIFIER_SIZE;
	}
	PUT_AT(__u64, at, 8, tgid | (__u64)pid << 32);
	/* The common fields. Programs cannot see flags and preempt count: both are 0. */
	PUT_AT(__u64, at, HOT_RAW_SIZE_OFFSET,
	       raw_size | CONSTANT(hot_constants, tracepoint_id) << 32);
	PUT_AT(__u32, at, FIELD_OFFSET(struct payload_common, pid), pid);
	hot->at = at;
	return true;
}

/* Copies a small field whose size the compiler knows. */
static __always_inline void copy(void *to, const void *from, __u64 size)
{
	if (!__builtin_constant_p(size)) {
		bpf_probe_read_kernel(to, size, from);
		return;
	}
#pragma unroll
	for (__u64 i = 0; i < size; i += 8)
		PUT_AT(__u64, to, i, *(const volatile __u64 *)(from + i));
}

/* Moves the record from the scratch map into the ring. */
static __always_inline enum hot_end hot_move(struct hot *hot)
{
	const void *from = hot->at;
	void *to;

	if (HAS(hot, filtered) && !filter_hook(from + HOT_PAYLOAD_OFFSET))
		return HOT_NONE;
	to = hot_reserve(hot);
	if (!to)
		return HAS(hot, closes) && hot->place.beyond ? HOT_BEYOND : HOT_PLACELESS;
	if (HAS(hot, identified)) {
		PUT_AT(__u64, to, 0, *(const volatile __u64 *)(from - HOT_IDENTIFIER_SIZE));
		to += HOT_IDENTIFIER_SIZE;
	}
	copy(to, from, hot->size);
	hot->at = to;
	return HOT_WRITTEN;
}

static __always_inline enum hot_end hot_end(struct hot *hot)
{
	__u64 time;

	if (HAS(hot, filtered) || HAS(hot, closes)) {
		enum hot_end end = hot_move(hot);

		if (end != HOT_WRITTEN)
			return end;
	}
	time = ring_time(&hot->place);
	PUT_AT(__u64, hot->at, 16, time);
	ring_commit(&hot->place, time);
	return HOT_WRITTEN;
}

static __always_inline void put_comm(void *at, const struct task_struct *task)
{
	const __u64 *comm = (const void *)task->comm;

	PUT_AT(__u64, at, 0, comm[0]);
	PUT_AT(__u64, at, 8, comm[1]);
}

/* ── strings behind the fixed part ──────────────────────────────────────────────────────── */

#define PIECE 64 /* of the stack; see emit/filter-emit.h for what else is on it */
_Static_assert((HOT_STRING_MAX - 1) % (PIECE - 1) == 0, "what is left is the NUL");

/*
 * Bytes of a kernel string with its NUL, 1 to HOT_STRING_MAX. A record's size must be known before
 * it is reserved, so the string is measured first, in pieces; that needs no memory.
 */
static __always_inline __u64 string_size(const char *string)
{
	char piece[PIECE];
	__u64 size = 0;

	for (int i = 0; i < HOT_STRING_MAX / (PIECE - 1); i++) {
		long n = bpf_probe_read_kernel_str(piece, sizeof(piece), string + size);

		if (n <= 0)
			break;
		barrier_var(n); /* else the two merge, and 6.1's verifier learns nothing */
		if (n < PIECE)
			return size + n;
		size += PIECE - 1; /* cut short, or exactly as long: continue */
	}
	return HOT_STRING_MAX;
}

/* Copies a measured string, and ends it even if it has changed meanwhile. */
static __always_inline void put_string(void *at, const char *string, __u64 size)
{
	bpf_probe_read_kernel(at, size, string);
	PUT_AT(__u8, at, size - 1, 0);
}

#define DATA_LOC(size, offset) ((__u32)(size) << 16 | (__u32)(offset))

/* Opens a record with `dynamic` bytes behind the fixed part. All padding lies in the last 8
 * bytes. */
#define BEGIN_DYNAMIC(hot, payload, dynamic) \
	hot_begin_dynamic(hot, HOT_RECORD_SIZE(sizeof(payload) + (dynamic)))

static __always_inline bool hot_begin_dynamic(struct hot *hot, __u64 size)
{
	if (!hot_begin(hot, size, bpf_get_current_task_btf()))
		return false;
	PUT_AT(__u64, hot->at, size - 8, 0);
	return true;
}

/* Copies a task's name once, as it can change at any time. Bytes with its NUL, 1 to 16. */
static __always_inline __u64 take_comm(char comm[TASK_COMM_LEN], const struct task_struct *task)
{
	long size = bpf_probe_read_kernel_str(comm, TASK_COMM_LEN, task->comm);

	if (size < 1 || size > TASK_COMM_LEN) {
		comm[0] = '\0';
		return 1;
	}
	return size;
}
