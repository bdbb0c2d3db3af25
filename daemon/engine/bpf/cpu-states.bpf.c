// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notes when CPUs go offline and online. On the way down it notes before the step of CPU hotplug
 * that removes perf events from a CPU (perf_event_exit_cpu()), on the way up before the same step.
 * If the kernel gives the way down up later, it goes back through the step with the old target
 * (cpuhp_reset_state()): the CPU has not been offline, but its perf events have died.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "daemon/engine/bpf/hotplug.h"

char LICENSE[] SEC("license") = "GPL";

/* CPUHP_AP_PERF_ONLINE, whose number differs between kernels; the engine sets it. */
const volatile int perf_online = -1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the engine sets it */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pp_cpu_state);
} pp_cpu_states SEC(".maps");

/* cpu, target, idx, fun */
SEC("raw_tp/cpuhp_enter")
int pp_cpus(struct bpf_raw_tracepoint_args *ctx)
{
	int target = (int)ctx->args[1], step = (int)ctx->args[2];
	__u32 cpu = (__u32)ctx->args[0];
	struct pp_cpu_state *state;

	if (step != perf_online)
		return 0;
	state = bpf_map_lookup_elem(&pp_cpu_states, &cpu);
	if (!state)
		return 0;
	if (target >= step) {
		state->away = 0;
		return 0;
	}
	/* In this order: a reader that sees the new generation also sees that the CPU goes
	 * offline. */
	__sync_lock_test_and_set(&state->away, bpf_ktime_get_ns());
	__sync_fetch_and_add(&state->generation, 1);
	return 0;
}
