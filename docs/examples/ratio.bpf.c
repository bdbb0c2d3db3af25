// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sampling only while a counter ratio is bad: keeps samples of a counter with a fixed period only while
 * it counts at least PER_MS a millisecond of the time that it ran on this CPU. Of cache-misses that is
 * code that misses the cache; where few are good, as of instructions, compare the other way round.
 *
 *     clang -g -O2 -target bpf -idirafter /usr/include/$(gcc -print-multiarch) -c ratio.bpf.c            (-DPER_MS=20000)
 *     perfctl create misses -e cache-misses -c 10000 -g --bpf ratio.bpf.o
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <perfpersist/perfpersist.bpf.h>

#ifndef PER_MS
#define PER_MS 1000ULL
#endif

/* The counter at this CPU's last sample. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_perf_event_value);
} before SEC(".maps");

PP_PROGRAM("perf_event", while_bad, struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_value now = {}, *last;
	__u64 counted, ran;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&before, &zero);
	if (!last || bpf_perf_prog_read_value(ctx, &now, sizeof(now)))
		return PP_KEEP;
	counted = now.counter - last->counter;
	ran = now.running - last->running;
	*last = now;
	return counted * 1000000 >= PER_MS * ran ? PP_KEEP : PP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
