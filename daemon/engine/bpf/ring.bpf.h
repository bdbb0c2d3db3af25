/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing into this CPU's ring, as proto/ring.h demands it of one program that cannot nest on
 * its CPU. Owns the map of rings and the constants that say how a ring is laid out; knows
 * nothing of what a record holds.
 *
 * The file is part of a template (daemon/engine/template.h): `rings` and the constants are
 * replaced for each event. The verifier sees the constants as constants, and proves from them
 * that a record at any position lies within the ring.
 */
#ifndef PP_RING_BPF_H
#define PP_RING_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <bpf/bpf_helpers.h>

#include "proto/ring.h"

const volatile __u64 ring_data_mask = PP_DATA_SIZE_MIN - 1;
const volatile __u32 ring_header_size = PP_RING_PAGE;

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

/* This CPU's ring; NULL: the CPU is not recorded. */
static __always_inline struct pp_ring_header *ring_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!ring)
		return NULL;
	return bpf_map_lookup_elem(ring, &zero);
}

/*
 * Room for a record of that many bytes, a multiple of 8 and not above the ring's spill.
 * *ret_head is for ring_commit, once the record is written.
 */
static __always_inline void *ring_reserve(struct pp_ring_header *ring, __u64 size, __u64 *ret_head)
{
	__u64 head = ring->live.head - size;

	ring_publish(&ring->live.reserve, head);
	ring_barrier();
	*ret_head = head;
	return (void *)ring + ring_header_size + (head & ring_data_mask);
}

static __always_inline void ring_commit(struct pp_ring_header *ring, __u64 head)
{
	ring_barrier();
	*(volatile __u64 *)&ring->live.records += 1;
	ring_publish(&ring->live.head, head);
}

#endif
