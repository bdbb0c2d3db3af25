/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Making a record of a hot tracepoint: PERF_SAMPLE_TID | TIME | RAW, the raw part a payload of
 * payload.h. Owns everything around the payload's fields; knows no tracepoint.
 *
 * A tp_btf program cannot nest on its CPU: the kernel skips it then, and counts that.
 *
 * This runs on the hottest paths there are. The order of things is for that: one look-up tells
 * whether the CPU is recorded at all, stores are as wide as the layout allows, and the clock
 * comes last: reading it waits for all loads before it, and meanwhile the stores get done. Of
 * what it costs, most is the kernel's call of the program and the clock.
 */
#ifndef PP_HOT_BPF_H
#define PP_HOT_BPF_H

#include "daemon/engine/bpf/kernel.bpf.h"
#include "daemon/engine/bpf/payload.h"
#include "daemon/engine/bpf/ring.bpf.h"

const volatile __u32 tracepoint_id = 0;

/* What the kernel writes for a string that is NULL. */
static const volatile char no_string[] = "(null)";

struct hot {
	struct pp_ring_header *ring;
	__u64 head;
	void *at; /* where the record is written */
};

/* Payloads lie 4 bytes off an 8-byte border; volatile keeps each store in one piece. */
#define PUT_AT(type, at, offset, value) (*(volatile type *)((at) + (offset)) = (value))

#define FIELD_OFFSET(payload, field) (HOT_PAYLOAD_OFFSET + __builtin_offsetof(payload, field))
#define FIELD_TYPE(payload, field) __typeof__(((payload *)0)->field)
#define PUT(hot, payload, field, value) \
	PUT_AT(FIELD_TYPE(payload, field), (hot)->at, FIELD_OFFSET(payload, field), value)
#define PUT_COMM(hot, payload, field, task) put_comm((hot)->at + FIELD_OFFSET(payload, field), task)

/* Where the padding begins: behind the last field of 4 bytes or more. */
#define FIELDS_END(payload, last) \
	(FIELD_OFFSET(payload, last) + (sizeof(FIELD_TYPE(payload, last)) & ~3))

/* Opens a record of a fixed layout whose last field (of 4 bytes or more) is `last`. */
#define BEGIN(hot, payload, last, task)                                                       \
	do {                                                                                  \
		hot_begin(hot, HOT_RECORD_SIZE(sizeof(payload)), task);                       \
		zero((hot)->at, FIELDS_END(payload, last), HOT_RECORD_SIZE(sizeof(payload))); \
	} while (0)

static __always_inline void zero(void *at, __u64 from, __u64 to)
{
	if (from & 4) {
		PUT_AT(__u32, at, from, 0);
		from += 4;
	}
	if (from < to)
		PUT_AT(__u64, at, from, 0);
}

static __always_inline void hot_begin(struct hot *hot, __u64 size, const struct task_struct *task)
{
	__u32 pid = task->pid, tgid = task->tgid;
	__u64 raw_size = size - HOT_PAYLOAD_OFFSET;
	void *at = ring_reserve(hot->ring, size, &hot->head);

	PUT_AT(__u64, at, 0,
	       PERF_RECORD_SAMPLE | (__u64)PERF_RECORD_MISC_KERNEL << 32 | size << 48);
	PUT_AT(__u64, at, 8, tgid | (__u64)pid << 32);
	/* The common fields; flags and preempt count are not known here: 0. */
	PUT_AT(__u64, at, HOT_RAW_SIZE_OFFSET, raw_size | (__u64)tracepoint_id << 32);
	PUT_AT(__u32, at, FIELD_OFFSET(struct payload_common, pid), pid);
	hot->at = at;
}

static __always_inline void hot_end(struct hot *hot)
{
	PUT_AT(__u64, hot->at, 16, bpf_ktime_get_ns());
	ring_commit(hot->ring, hot->head);
}

static __always_inline void put_comm(void *at, const struct task_struct *task)
{
	const __u64 *comm = (const void *)task->comm;

	PUT_AT(__u64, at, 0, comm[0]);
	PUT_AT(__u64, at, 8, comm[1]);
}

/* ── strings behind the fixed part ──────────────────────────────────────────────────────── */

#define PIECE 128

/*
 * Bytes of a kernel string with its NUL, 1 to HOT_STRING_MAX. A record's size must be known
 * before its place is, so the string is measured first, in pieces; that needs no memory of
 * its own.
 */
static __always_inline __u64 string_size(const char *string)
{
	char piece[PIECE];
	__u64 size = 0;

	for (int i = 0; i <= HOT_STRING_MAX / (PIECE - 1); i++) {
		long n = bpf_probe_read_kernel_str(piece, sizeof(piece), string + size);

		if (n <= 0)
			break;
		barrier_var(n); /* or the two become one, which 6.1's verifier learns nothing of */
		if (n < PIECE) {
			size += n;
			return size < HOT_STRING_MAX ? size : HOT_STRING_MAX;
		}
		size += PIECE - 1; /* cut short, or ended just so: look on */
	}
	return HOT_STRING_MAX;
}

/* Copies a measured string, and ends it whatever has become of it meanwhile. */
static __always_inline void put_string(void *at, const char *string, __u64 size)
{
	bpf_probe_read_kernel(at, size, string);
	PUT_AT(__u8, at, size - 1, 0);
}

#define DATA_LOC(size, offset) ((__u32)(size) << 16 | (__u32)(offset))

/* Opens a record with `dynamic` bytes behind the fixed part. What is padding lies in the last
 * 8 bytes. */
#define BEGIN_DYNAMIC(hot, payload, dynamic)                                \
	do {                                                                \
		__u64 _size = HOT_RECORD_SIZE(sizeof(payload) + (dynamic)); \
                                                                            \
		hot_begin(hot, _size, bpf_get_current_task_btf());          \
		PUT_AT(__u64, (hot)->at, _size - 8, 0);                     \
	} while (0)

/* A task's name, taken once: it may be changed at any time. Bytes with its NUL, 1 to 16. */
static __always_inline __u64 take_comm(char comm[TASK_COMM_LEN], const struct task_struct *task)
{
	long size = bpf_probe_read_kernel_str(comm, TASK_COMM_LEN, task->comm);

	if (size < 1 || size > TASK_COMM_LEN) {
		comm[0] = '\0';
		return 1;
	}
	return size;
}

#endif
