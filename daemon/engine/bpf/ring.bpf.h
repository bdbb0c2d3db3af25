/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes into this CPU's ring, in the two ways of proto/ring.h, with the steps around it: the
 * filter, the rate limit, the wakeup. Owns the map of rings and the constants that say how a ring
 * is laid out; knows nothing of a record's contents.
 *
 * The file is part of a template (daemon/engine/emit/template.h): each event gets its own maps and
 * constants, and its filter replaces filter_hook(). The verifier sees the constants as such, and
 * proves from them that a record at any position lies within the ring.
 */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/constant.bpf.h"
#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/bpf/send.bpf.h"
#include "daemon/engine/bpf/wakeup.h"
#include "daemon/trigger.h"
#include "proto/ring.h"

const volatile struct ring_constants ring_constants = {
	.data_mask = PP_DATA_SIZE_MIN - 1,
	.header_size = PP_RING_PAGE,
};

#define RING_CONSTANT(member) CONSTANT(ring_constants, member)

/* Only the verifier of the template looks at the size: the largest possible spill. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, PP_RING_PAGE + PP_DATA_SIZE_MIN + PP_SPILL_SIZE_MAX);
		});
} rings SEC(".maps");

/* Counts, for each CPU, the events that found no ring; one element per possible CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ringless SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* its size */
} wakeups SEC(".maps");

/* `closes`: the event's tape. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_tape);
} tape SEC(".maps");

/* `closes`: those of the instance, for the broker. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* its size */
} firings SEC(".maps");

/*
 * A store that other CPUs must see in program order. x86 keeps stores in order, so a compiler
 * barrier is enough; elsewhere it takes an exchange, which BPF defines to be fully ordered.
 */
#ifdef __TARGET_ARCH_x86
#define ring_publish(p, v) (*(volatile __u64 *)(p) = (v))
#else
#define ring_publish(p, v) ((void)__sync_lock_test_and_set((p), (v)))
#endif
#define ring_barrier() asm volatile("" ::: "memory")
#define ring_read(p) (*(volatile __u64 *)(p))

/* A record's place, from its ring to ring_commit(). */
struct ring_place {
	struct pp_ring_header *ring;
	bool plain; /* known at compile time: there are no options */
	__u64 head; /* where the record begins */
	__u64 end;  /* of a ring with one writer: where it ends; this was the head before */
	__u64 time; /* of a ring with nesting writers, or of a closing side */
	struct pp_tape *tape; /* of a closing side */
	bool beyond;	      /* likewise: the record is for the next side */
};

#define RING_OPTION(place, member) (!(place)->plain && OPTION(ring_constants, member))

/* Finds this CPU's ring. NULL: the CPU is not recorded. */
static __always_inline struct pp_ring_header *ring_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!ring)
		return NULL;
	return bpf_map_lookup_elem(ring, &zero);
}

/* Counts an event on a CPU that has no ring (yet). */
static __always_inline void ring_count_ringless(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 *count;

	if (!OPTION(ring_constants, everywhere))
		return;
	count = bpf_map_lookup_elem(&ringless, &cpu);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/*
 * Stands for the event's filter, and fires its trigger: instantiation replaces its instructions. It must stay a
 * function, and be the last of the program. The payload has the size that was given there.
 */
static __attribute__((noinline)) int filter_hook(const void *payload)
{
	int yes = 1;

	asm volatile("" : "+r"(yes) : "r"(payload) : "memory");
	return yes;
}

/* ── one writer, which cannot nest ──────────────────────────────────────────────────────── */

/*
 * The kernel guarantees that these programs cannot nest (6.1 to 7.2: programs exclude each other,
 * or themselves, on a CPU). A load and a comparison each verify that, and violations are counted: a
 * program that finds another one at work leaves. A program that finds at its end that another one
 * came between its first look and its mark has overwritten that one's record.
 */

static __always_inline void *ring_address(struct pp_ring_header *ring, __u64 position)
{
	return (void *)ring + RING_CONSTANT(header_size) + (position & RING_CONSTANT(data_mask));
}

static __always_inline void *ring_reserve_alone(struct ring_place *place, __u64 size)
{
	struct pp_ring_live *live = &place->ring->live;

	place->end = live->head;
	if (ring_read(&live->reserve) != place->end) {
		ring_read(&live->missed) += 1;
		return NULL;
	}
	place->head = place->end - size;
	ring_publish(&live->reserve, place->head);
	ring_barrier();
	return ring_address(place->ring, place->head);
}

static __always_inline void ring_commit_alone(const struct ring_place *place)
{
	struct pp_ring_live *live = &place->ring->live;

	ring_barrier();
	if (ring_read(&live->head) == place->end)
		ring_read(&live->records) += 1;
	else
		ring_read(&live->missed) += 1;
	ring_publish(&live->head, place->head);
}

/* ── the window of a closing side ───────────────────────────────────────────────────────── */

/* Whether the record's time is beyond the window. */
static __always_inline bool ring_is_over(struct ring_place *place)
{
	__u64 until = ring_read(&place->tape->until);

	place->beyond = until && place->time > until;
	return place->beyond;
}

/* Turns the tape, and tells the broker, unless another CPU was faster. */
static __always_inline void ring_close(struct pp_tape *tape)
{
	if (!pp_close(tape))
		return;
	tape->by.closed = tape->id;
	send(&firings, &tape->by, sizeof(tape->by));
}

/* Takes one of the records that the window has left; who takes the last one ends it. What comes
 * before the firing is written down is as if it had come before the firing. */
static __always_inline bool ring_takes_part(struct ring_place *place)
{
	__s64 left = 2;

	if (ring_read(&place->tape->until))
		left = __sync_fetch_and_add(&place->tape->left, -1);
	if (left == 1)
		ring_close(place->tape);
	place->beyond = left <= 0;
	return !place->beyond;
}

/* ── writers that nest ──────────────────────────────────────────────────────────────────── */

#define RESERVE_TRIES 4 /* each retry means that another writer came between */

/* False: another writer came meanwhile, and this one is in again. */
static __always_inline bool ring_try_to_leave(struct pp_ring_live *live)
{
	__u64 reserve = ring_read(&live->reserve);

	if (ring_read(&live->nest) == 1)
		ring_publish(&live->head, reserve);
	if (__sync_fetch_and_add(&live->nest, -1) != 1 ||
	    ring_read(&live->reserve) == ring_read(&live->head))
		return true;
	__sync_fetch_and_add(&live->nest, 1);
	return false;
}

/*
 * Moves head if no other writer is active. A writer that came and went between our look at reserve
 * and our leaving has left that to us. So has a writer that left at the same time, if each saw the
 * other. So the last one looks at head itself.
 *
 * The loop is written out, and the next one, too: before 6.5 the verifier refuses a loop that ends
 * in anything but a jump ("back-edge"), and the compiler chooses how it ends.
 */
static __always_inline void ring_leave(struct pp_ring_live *live)
{
	if (ring_try_to_leave(live) || ring_try_to_leave(live) || ring_try_to_leave(live))
		return;
	if (ring_read(&live->nest) == 1)
		ring_publish(&live->head, ring_read(&live->reserve));
	__sync_fetch_and_add(&live->nest, -1);
}

/*
 * Reads the clock before it takes the place, and again if another writer was faster: so times only
 * increase in a ring, even if writers nest.
 *
 * NULL: there is no place; that is counted, and the caller has nothing to clean up. Or, of a closing
 * side, the record is beyond. closes: known at compile time.
 */
static __always_inline void *ring_reserve_nesting(struct ring_place *place, __u64 size, bool closes)
{
	struct pp_ring_live *live = &place->ring->live;

	__sync_fetch_and_add(&live->nest, 1);
	_Pragma("clang loop unroll(full)") for (int i = 0; i < RESERVE_TRIES; i++)
	{
		/* In this order: head may only be too high, and the distance too long. */
		__u64 head = ring_read(&live->head), old = ring_read(&live->reserve);
		__u64 position = old - size;

		if (head - position > RING_CONSTANT(data_mask) + 1)
			break;
		place->time = bpf_ktime_get_ns();
		if (closes && ring_is_over(place)) {
			ring_leave(live);
			return NULL;
		}
		place->head = position;
		if (__sync_val_compare_and_swap(&live->reserve, old, position) == old)
			return ring_address(place->ring, position);
	}
	__sync_fetch_and_add(&live->missed, 1);
	ring_leave(live);
	return NULL;
}

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

/* The time that decides is the record's. A record that finds no room is one of the window's. */
static __always_inline void *ring_reserve_closing(struct ring_place *place, __u64 size)
{
	__u32 zero = 0;

	place->tape = bpf_map_lookup_elem(&tape, &zero);
	if (!place->tape)
		return NULL;
	place->time = bpf_ktime_get_ns();
	if (ring_is_over(place) || !ring_takes_part(place))
		return NULL;
	if (RING_OPTION(place, nests))
		return ring_reserve_nesting(place, size, true);
	return ring_reserve_alone(place, size);
}

/*
 * Reserves room for a record of `size` bytes, a multiple of 8 and at most the ring's spill. NULL:
 * writers nest too deep, or nest where they cannot; that is counted. Or the record is beyond.
 */
static __always_inline void *ring_reserve(struct ring_place *place, __u64 size)
{
	if (RING_OPTION(place, closes))
		return ring_reserve_closing(place, size);
	if (RING_OPTION(place, nests))
		return ring_reserve_nesting(place, size, false);
	return ring_reserve_alone(place, size);
}

/* The record's time. Call it as late as possible. */
static __always_inline __u64 ring_time(const struct ring_place *place)
{
	if (RING_OPTION(place, nests) || RING_OPTION(place, closes))
		return place->time;
	return bpf_ktime_get_ns();
}

/* Tells the broker that there is something to read, at most once an interval. What comes while this CPU sends is told
 * with the next record; where there is no room nobody reads, or all are told (wakeups.c). */
static __always_inline void ring_wake(struct pp_ring_header *ring, __u64 time)
{
	struct pp_wakeup wakeup = { .event_id = RING_CONSTANT(event_id), .cpu = ring->cpu };

	/* Signed: a nested writer may have stored a time after ours. */
	if ((__s64)(time - ring->limit.woken) < (__s64)PP_WAKEUP_INTERVAL)
		return;
	ring->limit.woken = time;
	if (send(&wakeups, &wakeup, sizeof(wakeup)) == SENT_BUSY)
		ring->limit.woken = 0;
}

static __always_inline void ring_commit(const struct ring_place *place, __u64 time)
{
	if (RING_OPTION(place, nests)) {
		__sync_fetch_and_add(&place->ring->live.records, 1);
		ring_leave(&place->ring->live);
	} else {
		ring_commit_alone(place);
	}
	if (RING_OPTION(place, wakes))
		ring_wake(place->ring, time);
}

/*
 * The record is written, or has no place: goes on to the program that tells of the firing, if this is a trigger's
 * event, and does not return. A PROG_ARRAY is for programs with one attach target (newer kernels), so the templates
 * in one object cannot share one: a number stands for it.
 */
static __always_inline void ring_tell(const void *ctx)
{
	if (!OPTION(ring_constants, tells))
		return;
	asm volatile(
		"r1 = %[ctx]\n\t"
		"r2 = %[mark] ll\n\t"
		"r3 = 0\n\t"
		"call %[tail_call]"
		:
		: [ctx] "r"(ctx), [mark] "i"(RING_TELL_MARK), [tail_call] "i"(BPF_FUNC_tail_call)
		: "r0", "r1", "r2", "r3", "r4", "r5", "memory");
}

/*
 * The record is beyond the window of this side: ends that, goes on to the program of the side that the
 * tape is on then, and does not return.
 */
static __always_inline void ring_go_on(const void *ctx)
{
	struct pp_tape *turned;
	__u32 zero = 0;
	__u64 slot;

	turned = bpf_map_lookup_elem(&tape, &zero);
	if (!turned)
		return;
	ring_close(turned);
	slot = RING_CONSTANT(sides_base) + *(volatile __u32 *)&turned->state.side;
	asm volatile("r1 = %[ctx]\n\t"
		     "r2 = %[mark] ll\n\t"
		     "r3 = %[slot]\n\t"
		     "call %[tail_call]"
		     :
		     : [ctx] "r"(ctx), [mark] "i"(RING_SIDES_MARK), [slot] "r"(slot),
		       [tail_call] "i"(BPF_FUNC_tail_call)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	__sync_fetch_and_add(&turned->lost, 1);
}

#define SECOND 1000000000LL

/*
 * Whether the rate limit admits one more record; counts it if not. Jiffies are precise enough, cost
 * one load, and can be read in an NMI. The kernel's coarse clock cannot, and is not available to
 * these programs.
 */
static __always_inline bool ring_admits(struct ring_place *place)
{
	__u64 now = bpf_jiffies64() * RING_CONSTANT(tick);
	struct pp_ring_limit *limit = &place->ring->limit;

	if ((__s64)(now - limit->window) >= SECOND) {
		limit->window = now;
		limit->in_window = 0;
	}
	if (RING_OPTION(place, nests)) {
		if (__sync_fetch_and_add(&limit->in_window, 1) < RING_CONSTANT(max_rate))
			return true;
		__sync_fetch_and_add(&limit->limited, 1);
		return false;
	}
	if (limit->in_window < RING_CONSTANT(max_rate)) {
		limit->in_window += 1;
		return true;
	}
	limit->limited += 1;
	return false;
}
