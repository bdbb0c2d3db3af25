// SPDX-License-Identifier: GPL-2.0-only
/* A program that goes on to nothing. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int pt_alone(void *ctx)
{
	(void)ctx;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
