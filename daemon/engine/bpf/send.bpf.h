/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends messages to the broker through the instance's ring buffers.
 *
 * bpf_ringbuf_output() takes a spinlock, and another program may run on the same CPU meanwhile: on the tracepoint
 * of a contended lock, on a probe in what the kernel calls there, in an NMI. (tp_btf programs and uprobes do not
 * raise bpf_prog_active, which would keep it out; 6.1 to 7.x.) If that one took the lock, too, the CPU would hang,
 * up to 6.14 for good, later for 250 ms. So each CPU sends one message at a time, and what comes in between is
 * not sent.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The instance's, so that it holds for all its programs: 1 while the CPU sends. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sending SEC(".maps");

enum sent {
	SENT,
	SENT_NO_ROOM,
	SENT_BUSY, /* not: this CPU is sending; it can do so soon */
};

static __always_inline enum sent send(void *ringbuf, void *message, __u64 size)
{
	__u32 zero = 0;
	__u64 *busy = bpf_map_lookup_elem(&sending, &zero);
	long r;

	if (!busy || __sync_val_compare_and_swap(busy, 0, 1))
		return SENT_BUSY;
	r = bpf_ringbuf_output(ringbuf, message, size, 0);
	*(volatile __u64 *)busy = 0;
	return r == 0 ? SENT : SENT_NO_ROOM;
}
