// SPDX-License-Identifier: GPL-2.0-only
/* A program whose map takes a gigabyte, and one that takes too many maps. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include "proto/perfpersist.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 20);
	__type(key, __u32);
	__uint(value_size, 1024);
} pt_huge SEC(".maps");

PP_PROGRAM("perf_event", pt_of_huge, struct bpf_perf_event_data *ctx)
{
	__u32 key = (__u32)ctx->sample_period;

	return bpf_map_lookup_elem(&pt_huge, &key) ? PP_KEEP : PP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
