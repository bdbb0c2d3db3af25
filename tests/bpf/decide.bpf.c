// SPDX-License-Identifier: GPL-2.0-only
/* What test-bpf.sh gives to events: programs that count what they see and decide. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>

#include "proto/perfpersist.bpf.h"

/* How often each decision was made; behind them, how often there was one to make. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PP_DECISIONS + 1);
	__type(key, __u32);
	__type(value, __u64);
} pt_counts SEC(".maps");

/* The calls that are kept, and those that fire: the test writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} pt_calls SEC(".maps");

static __u64 add(__u32 key)
{
	__u64 *count = bpf_map_lookup_elem(&pt_counts, &key);

	return count ? __sync_fetch_and_add(count, 1) : 0;
}

static int counted(int decision)
{
	add((__u32)decision);
	return decision;
}

static int every_tenth(void)
{
	return counted(add(PP_DECISIONS) % 10 ? PP_DROP : PP_KEEP);
}

PP_PROGRAM("perf_event", pt_tenth, struct bpf_perf_event_data *ctx)
{
	return every_tenth();
}

static __u64 number(__u32 key)
{
	__u64 *n = bpf_map_lookup_elem(&pt_calls, &key);

	return n ? *n : 0;
}

/* Of process pt_calls[0]. */
static int by_call(__u64 id)
{
	if (bpf_get_current_pid_tgid() >> 32 != number(0))
		return PP_DROP;
	if (id == number(1))
		return counted(PP_KEEP);
	return counted(id == number(2) ? PP_FIRE : PP_DROP);
}

struct sys_enter {
	__u64 common;
	__s64 id;
	__u64 args[6];
};

PP_PROGRAM("tracepoint/raw_syscalls/sys_enter", pt_call, struct sys_enter *ctx)
{
	return by_call((__u64)ctx->id);
}

PP_PROGRAM("tp_btf/sys_enter", pt_call_btf, __u64 *ctx)
{
	return by_call(ctx[1]);
}

PP_PROGRAM("tp_btf/sys_exit", pt_exit_btf, __u64 *ctx)
{
	return counted(ctx[1] ? PP_KEEP : PP_DROP);
}

PP_PROGRAM("kprobe", pt_probe, struct pt_regs *ctx)
{
	return every_tenth();
}

char LICENSE[] SEC("license") = "GPL";
