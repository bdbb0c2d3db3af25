/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing into this CPU's ring, in the two ways of proto/ring.h, and what stands before and
 * behind it: the filter, the rate limit, the wakeup. Owns the map of rings and the constants
 * that say how a ring is laid out; knows nothing of what a record holds.
 *
 * The file is part of a template (daemon/engine/emit/template.h): maps and constants are replaced for
 * each event, and filter_hook() by the event's filter. The verifier sees the constants as such,
 * and proves from them that a record at any position lies within the ring.
 */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/constant.bpf.h"
#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/bpf/wakeup.h"
#include "proto/ring.h"

const volatile struct ring_constants ring_constants = {
	.data_mask = PP_DATA_SIZE_MIN - 1,
	.header_size = PP_RING_PAGE,
};

#define RING_CONSTANT(member) CONSTANT(ring_constants, member)

/* Only the verifier of the template looks at the size: the largest spill there can be. */
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

/* What found no ring, of each CPU; as large as there are CPUs. */
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

/*
 * Stores that other CPUs must see in the order of the program. x86 keeps stores in order, so
 * that the compiler alone has to be held back; elsewhere it takes an exchange, which BPF
 * defines to be fully ordered.
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
	bool plain; /* the compiler knows it: there are no options */
	__u64 head; /* where the record begins */
	__u64 end;  /* of a ring with one writer: where it ends, which was the head before */
	__u64 time; /* of a ring with nesting writers */
};

#define RING_OPTION(place, member) (!(place)->plain && OPTION(ring_constants, member))

/* This CPU's ring; NULL: the CPU is not recorded. */
static __always_inline struct pp_ring_header *ring_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!ring)
		return NULL;
	return bpf_map_lookup_elem(ring, &zero);
}

/* What would have been recorded on a CPU that has no ring (yet). */
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
 * The event's filter: instantiation puts its instructions in place of this function's. It must
 * stay a function, and be the last of the program. The payload is as large as was said there.
 */
static __attribute__((noinline)) int filter_hook(const void *payload)
{
	int yes = 1;

	asm volatile("" : "+r"(yes) : "r"(payload) : "memory");
	return yes;
}

/* ── one writer, which cannot nest ──────────────────────────────────────────────────────── */

/*
 * That it cannot is the kernel's word (of 6.1 to 7.2: programs exclude each other, or themselves,
 * on a CPU). It costs a load and a comparison each to see if it is broken, and that is counted: who
 * comes while another is under way leaves; who finds at the end that another came between its first
 * look and its mark has written over that one's record.
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

/* ── writers that nest ──────────────────────────────────────────────────────────────────── */

#define RESERVE_TRIES 4 /* each costs another writer that came between */

/* False: another came while it left, and it is back in. */
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
 * Moves head if nobody else is under way. Whoever came and went between our look at reserve and
 * our leaving has left that to us; and so has who left while we did, if each saw the other. So it
 * is head itself that the last one looks at.
 *
 * Written out, and the next loop, too: before 6.5 the verifier refuses a loop that ends in anything
 * but a jump ("back-edge"), and how it ends is the compiler's choice.
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
 * The clock is read before the place is taken, and again if another writer was faster: so times
 * only go up in a ring, nested writers or not.
 *
 * NULL: no place; that is counted, and nothing is left to be done.
 */
static __always_inline void *ring_reserve_nesting(struct ring_place *place, __u64 size)
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
		place->head = position;
		if (__sync_val_compare_and_swap(&live->reserve, old, position) == old)
			return ring_address(place->ring, position);
	}
	__sync_fetch_and_add(&live->missed, 1);
	ring_leave(live);
	return NULL;
}

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Room for a record of that many bytes, a multiple of 8 and not above the ring's spill. NULL:
 * none, because writers nest too deep, or nest where they cannot; that is counted.
 */
static __always_inline void *ring_reserve(struct ring_place *place, __u64 size)
{
	if (RING_OPTION(place, nests))
		return ring_reserve_nesting(place, size);
	return ring_reserve_alone(place, size);
}

/* The record's time; to be asked for as late as possible. */
static __always_inline __u64 ring_time(const struct ring_place *place)
{
	if (RING_OPTION(place, nests))
		return place->time;
	return bpf_ktime_get_ns();
}

/* Tells the broker that there is something to read, not too often. */
static __always_inline void ring_wake(struct pp_ring_header *ring, __u64 time)
{
	struct pp_wakeup wakeup = { .event_id = RING_CONSTANT(event_id), .cpu = ring->cpu };

	/* Signed: a writer that nested may have been here with a time after ours. */
	if ((__s64)(time - ring->limit.woken) < (__s64)PP_WAKEUP_INTERVAL)
		return;
	ring->limit.woken = time;
	bpf_ringbuf_output(&wakeups, &wakeup, sizeof(wakeup), 0);
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

#define SECOND 1000000000LL

/*
 * Whether the rate limit lets one more record through; counts it if not. Jiffies are enough for
 * that, cost one load, and can be read in an NMI; the kernel's coarse clock could not, and is not
 * given to programs like these.
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
