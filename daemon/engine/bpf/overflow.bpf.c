// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recorder of sampling events: runs when the event's counter has counted a period, and
 * writes a PERF_SAMPLE_IP | TID | TIME | PERIOD [| CALLCHAIN] record into this CPU's ring.
 *
 * The kernel runs one program of this kind (or of a tracepoint, or a probe) on a CPU at a
 * time, and silently skips any other. So the counter itself is read each time: what it has
 * counted since the last record is the true period of this one, and whole periods that are
 * missing in between are counted in the ring's `missed`.
 */
#include <linux/bpf_perf_event.h>
#include <stddef.h>

#include "daemon/engine/bpf/ring.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* What the counter says of the time between two records; set by overflow.c. */
const volatile __u32 counter_is_period = 1; /* what it counted in between is the period */
const volatile __u32 count_missed = 1;	    /* and the period is fixed: so much is missing */

#if defined(__TARGET_ARCH_x86)
#define SAMPLE_IP(regs) ((regs)->rip)
#define IN_USER(regs) (((regs)->cs & 3) != 0)
#elif defined(__TARGET_ARCH_arm64)
#define SAMPLE_IP(regs) ((regs)->pc)
#define IN_USER(regs) (((regs)->pstate & 0xf) == 0)
#endif

/* A record. */
struct sample {
	struct perf_event_header header;
	__u64 ip;
	__u32 pid, tid;
	__u64 time;
	__u64 period;
};

/* With a call chain; what it holds is behind it. */
struct chain_sample {
	struct sample sample;
	__u64 nr;
};

/*
 * The two halves of a call chain are gathered here first: their size must be known before the
 * record's place is. One copy per CPU serves all events, since no two of these programs run
 * on a CPU at a time.
 */
#define FRAMES 128 /* perf's 127, and a mark */

struct half {
	__u64 mark;
	__u64 ips[FRAMES];
};

struct chain {
	struct half kernel, user;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} chains SEC(".maps");

/*
 * What the counter has counted since the last record; the first one takes the event's word.
 *
 * Periods are rounded to the nearest number, since an interrupt comes late by a little. What
 * is missing is what the kernel did not let us record, whatever its reason: another program
 * ran (bpf_prog_active), the virtual CPU did not, or the CPU idled in a kernel that takes no
 * samples then. The last cannot be told from the others here: the record that ends the gap
 * is made by the task that ended it.
 */
static __always_inline __u64 true_period(struct bpf_perf_event_data *ctx,
					 struct pp_ring_header *ring)
{
	struct bpf_perf_event_value value = {};
	__u64 period = ctx->sample_period, delta;

	if (!counter_is_period || bpf_perf_prog_read_value(ctx, &value, sizeof(value)))
		return period;
	delta = value.counter - ring->live.counter;
	/* The first record, or the first of a new event: a CPU that came back gets one. */
	if (!ring->live.records || value.counter < ring->live.counter)
		delta = period;
	ring->live.counter = value.counter;

	if (count_missed && period && delta >= period + period / 2)
		ring->live.missed += (delta + period / 2) / period - 1;
	return delta;
}

static __always_inline void put_sample(struct sample *at, struct bpf_perf_event_data *ctx,
				       __u64 size, __u64 period)
{
	__u64 who = bpf_get_current_pid_tgid();

	at->header.type = PERF_RECORD_SAMPLE;
	at->header.misc = IN_USER(&ctx->regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
	at->header.size = size;
	at->ip = SAMPLE_IP(&ctx->regs);
	at->pid = who >> 32;
	at->tid = (__u32)who;
	at->time = bpf_ktime_get_ns();
	at->period = period;
}

SEC("perf_event")
int overflow(struct bpf_perf_event_data *ctx)
{
	struct pp_ring_header *ring = ring_here();
	struct sample *at;
	__u64 head;

	if (!ring)
		return 0;
	at = ring_reserve(ring, sizeof(*at), &head);
	put_sample(at, ctx, sizeof(*at), true_period(ctx, ring));
	ring_commit(ring, head);
	return 0;
}

/*
 * One half of a call chain: bytes, and where they begin; 0: there is none. perf puts a mark in
 * front of each half. The kernel hands the mark out with the frames, or it does not, depending
 * on its version and on the event.
 */
static __always_inline __u64 take_half(struct bpf_perf_event_data *ctx, struct half *half,
				       __u64 flags, __u64 mark, void **ret)
{
	long size = bpf_get_stack(ctx, half->ips, sizeof(half->ips), flags);

	if (size <= 0)
		return 0;
	if (half->ips[0] == mark) {
		*ret = half->ips;
		return size;
	}
	half->mark = mark;
	*ret = half;
	return size + sizeof(half->mark);
}

SEC("perf_event")
int overflow_chain(struct bpf_perf_event_data *ctx)
{
	struct pp_ring_header *ring = ring_here();
	__u64 kernel_size, user_size, size, head;
	void *kernel, *user, *frames;
	struct chain_sample *at;
	struct chain *chain;
	__u32 zero = 0;

	chain = bpf_map_lookup_elem(&chains, &zero);
	if (!ring || !chain)
		return 0;
	kernel_size = take_half(ctx, &chain->kernel, 0, PERF_CONTEXT_KERNEL, &kernel);
	user_size = take_half(ctx, &chain->user, BPF_F_USER_STACK, PERF_CONTEXT_USER, &user);
	size = sizeof(*at) + kernel_size + user_size;

	at = ring_reserve(ring, size, &head);
	put_sample(&at->sample, ctx, size, true_period(ctx, ring));
	at->nr = (kernel_size + user_size) / sizeof(__u64);
	frames = at + 1;
	if (kernel_size)
		bpf_probe_read_kernel(frames, kernel_size, kernel);
	if (user_size)
		bpf_probe_read_kernel(frames + kernel_size, user_size, user);
	ring_commit(ring, head);
	return 0;
}
