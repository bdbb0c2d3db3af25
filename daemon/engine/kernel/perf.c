// SPDX-License-Identifier: LGPL-2.1-or-later
/* perf_event_open(2) for the recorders. */
#include "daemon/engine/kernel/perf.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "proto/macro.h"

int perf_open(struct perf_event_attr *attr, unsigned cpu)
{
	struct perf_place place = { .cpu = (int)cpu, .tid = -1, .cgroup = -EBADF };

	return perf_open_at(attr, &place);
}

int perf_open_at(struct perf_event_attr *attr, const struct perf_place *at)
{
	bool in_cgroup = at->cgroup >= 0;
	int fd = (int)syscall(SYS_perf_event_open, attr, in_cgroup ? at->cgroup : at->tid, at->cpu,
			      at->group ?: -1,
			      PERF_FLAG_FD_CLOEXEC | (in_cgroup ? PERF_FLAG_PID_CGROUP : 0));

	return fd < 0 ? -errno : fd;
}

void perf_source_attr(const struct pp_source *source, struct perf_event_attr *ret)
{
	/* A breakpoint's address and length are the words config1 and config2. */
	*ret = (struct perf_event_attr){
		.type = source->type,
		.size = sizeof(*ret),
		.config = source->config,
		.bp_type = source->bp_type,
		.config1 = source->config1,
		.config2 = source->config2,
		.disabled = 1,
		.exclude_user = !!(source->exclude & PP_EXCLUDE_USER),
		.exclude_kernel = !!(source->exclude & PP_EXCLUDE_KERNEL),
		.exclude_hv = !!(source->exclude & PP_EXCLUDE_HV),
		.exclude_host = !!(source->exclude & PP_EXCLUDE_HOST),
		.exclude_guest = !!(source->exclude & PP_EXCLUDE_GUEST),
		.exclude_idle = !!(source->exclude & PP_EXCLUDE_IDLE),
		.precise_ip = source->precise_ip,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

void perf_tracepoint_attr(const struct tracepoint *tp, struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(*ret),
		.config = tp->id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
	};
}
