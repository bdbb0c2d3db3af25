// SPDX-License-Identifier: GPL-2.0-only
/*
 * A latency above a threshold: keeps a sched:sched_switch only if the task that comes was off the CPU
 * for at least THRESHOLD ns, asleep or waiting. As a trigger it fires then.
 *
 *     clang -g -O2 -target bpf -idirafter /usr/include/$(gcc -print-multiarch) -c off-cpu.bpf.c          (-DTHRESHOLD=50000000)
 *     perfctl create slow -e sched:sched_switch --bpf off-cpu.bpf.o
 *     bpftool map dump pinned /run/perfpersist/registry/default/slow/map-decided
 */
#include <linux/bpf.h>
#include <perfpersist/perfpersist.bpf.h>

#ifndef THRESHOLD
#define THRESHOLD 10000000ULL /* ns */
#endif

/* The payload, as /sys/kernel/tracing/events/sched/sched_switch/format has it. */
struct sched_switch {
	__u64 common;
	char prev_comm[16];
	__s32 prev_pid, prev_prio;
	__s64 prev_state;
	char next_comm[16];
	__s32 next_pid, next_prio;
};

/* When a task left its CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __s32);
	__type(value, __u64);
} left SEC(".maps");

/* How often it dropped, kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_DECISIONS);
	__type(key, __u32);
	__type(value, __u64);
} decided SEC(".maps");

static int decide(__u32 decision)
{
	__u64 *count = bpf_map_lookup_elem(&decided, &decision);

	if (count)
		__sync_fetch_and_add(count, 1);
	return (int)decision;
}

PP_PROGRAM("tracepoint/sched/sched_switch", off_cpu, struct sched_switch *ctx)
{
	__u64 now = bpf_ktime_get_ns(), *since;
	__s32 prev = ctx->prev_pid, next = ctx->next_pid;

	if (prev)
		bpf_map_update_elem(&left, &prev, &now, BPF_ANY);
	since = next ? bpf_map_lookup_elem(&left, &next) : NULL;
	return decide(since && now - *since >= THRESHOLD ? PP_FIRE : PP_DROP);
}

char LICENSE[] SEC("license") = "GPL";
