// SPDX-License-Identifier: GPL-2.0-only
/* What test-bpf.sh is refused. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include "proto/perfpersist.bpf.h"

PP_PROGRAM("perf_event", pt_wild, struct bpf_perf_event_data *ctx)
{
	return *(volatile int *)ctx->sample_period;
}

char LICENSE[] SEC("license") = "GPL";
