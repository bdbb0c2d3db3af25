// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder of sampling events: software and hardware counters that run a program each time
 * they have counted a period (bpf/overflow.bpf.c). Owns the templates of that program; knows
 * nothing of rings' insides.
 *
 * A counter belongs to one CPU, so each CPU has a link of its own. The link keeps its perf
 * event alive; nobody else holds it.
 */
#include "daemon/engine/overflow.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "daemon/engine/perf.h"
#include "daemon/engine/recorder.h"
#include "daemon/engine/template.h"
#include "daemon/log.h"
#include "overflow.skel.h"
#include "proto/macro.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

/* header, IP, TID, TIME, PERIOD; then the chain: nr, and two halves of a mark and 128 words. */
#define RECORD_SIZE 40
#define CHAIN_RECORD_SIZE (RECORD_SIZE + 8 + 2 * 129 * 8)
/* The verifier does not see that a size it cannot know is a multiple of 8. */
#define CHAIN_SPILL_SIZE (CHAIN_RECORD_SIZE + 8)

/* The templates, loaded when first asked for and kept: they take tens of milliseconds. */
static struct overflow_bpf *templates;

static int templates_get(void)
{
	struct overflow_bpf *skel;
	int r;

	if (templates)
		return 0;
	skel = overflow_bpf__open();
	if (!skel)
		return -errno;
	r = overflow_bpf__load(skel);
	if (r < 0) {
		overflow_bpf__destroy(skel);
		return r;
	}
	templates = skel;
	return 0;
}

static bool has_chain(const struct pp_spec *spec)
{
	return spec->flags & PP_EVENT_CALLCHAIN;
}

static bool is_clock(const struct pp_source *source)
{
	return source->type == PERF_TYPE_SOFTWARE && (source->config == PERF_COUNT_SW_CPU_CLOCK ||
						      source->config == PERF_COUNT_SW_TASK_CLOCK);
}

#define CLOCKS_GO_ON (PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_IDLE)

/*
 * The clocks go on counting in what the event leaves out (the kernel, user space, idle), and
 * only their samples are dropped there; other counters stand still meanwhile. So here what was
 * counted between two samples is not the time they stand for. Guests and hypervisors, which plain
 * events leave out as perf's do, are nothing to the clocks.
 */
static bool counter_is_period(const struct pp_spec *spec)
{
	return !(is_clock(&spec->source) && spec->source.exclude & CLOCKS_GO_ON);
}

/*
 * With a frequency the kernel changes a counter's period all the time and at will, so what is
 * missing cannot be counted in periods. Only the clocks turn it into a fixed period.
 */
static bool can_count_missed(const struct pp_spec *spec)
{
	return counter_is_period(spec) &&
	       (!(spec->flags & PP_EVENT_FREQ) || is_clock(&spec->source));
}

void overflow_attr(const struct pp_spec *spec, struct perf_event_attr *ret)
{
	const struct pp_source *source = &spec->source;
	bool freq = spec->flags & PP_EVENT_FREQ;

	*ret = (struct perf_event_attr){
		.type = source->type,
		.size = sizeof(*ret),
		.config = source->config,
		.config1 = source->config1,
		.config2 = source->config2,
		.sample_type = SAMPLE_TYPE | (has_chain(spec) ? PERF_SAMPLE_CALLCHAIN : 0),
		.disabled = 1,
		.freq = freq,
		.exclude_user = !!(source->exclude & PP_EXCLUDE_USER),
		.exclude_kernel = !!(source->exclude & PP_EXCLUDE_KERNEL),
		.exclude_hv = !!(source->exclude & PP_EXCLUDE_HV),
		.exclude_host = !!(source->exclude & PP_EXCLUDE_HOST),
		.exclude_guest = !!(source->exclude & PP_EXCLUDE_GUEST),
		.exclude_idle = !!(source->exclude & PP_EXCLUDE_IDLE),
		.precise_ip = source->precise_ip,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.write_backward = 1,
	};
	if (freq)
		ret->sample_freq = spec->period;
	else
		ret->sample_period = spec->period;
}

static int overflow_plan(const struct pp_spec *spec, const struct tracepoint *tp,
			 struct recorder_plan *ret)
{
	if (tp || spec->source.kind != PP_SOURCE_SAMPLING)
		return -EOPNOTSUPP;
	*ret = (struct recorder_plan){
		.recorder = PP_RECORDER_OVERFLOW,
		.sample_type = SAMPLE_TYPE | (has_chain(spec) ? PERF_SAMPLE_CALLCHAIN : 0),
		.spill_size = has_chain(spec) ? CHAIN_SPILL_SIZE : RECORD_SIZE,
		.missed_unknown = !can_count_missed(spec),
	};
	return 0;
}

static int overflow_load(const struct pp_spec *spec, const struct tracepoint *tp _unused_,
			 const struct recorder_rings *rings, int *ret_fd)
{
	_cleanup_free_ struct overflow_bpf__rodata *constants = NULL;
	_cleanup_close_ int constants_fd = -EBADF;
	const struct bpf_program *prog;
	size_t size;
	int r;

	if (rings->spill_size < (has_chain(spec) ? CHAIN_SPILL_SIZE : RECORD_SIZE))
		return -EINVAL;
	r = templates_get();
	if (r < 0)
		return r;

	size = bpf_map__value_size(templates->maps.rodata);
	constants = malloc(size);
	if (!constants)
		return -ENOMEM;
	memcpy(constants, templates->rodata, size);
	constants->ring_data_mask = rings->data_size - 1;
	constants->ring_header_size = rings->header_size;
	constants->counter_is_period = counter_is_period(spec);
	constants->count_missed = can_count_missed(spec);
	r = template_constants(constants, size, &constants_fd);
	if (r < 0)
		return r;

	const struct template_map maps[] = {
		{ bpf_map__fd(templates->maps.rings), rings->fd },
		{ bpf_map__fd(templates->maps.rodata), constants_fd },
	};

	prog = has_chain(spec) ? templates->progs.overflow_chain : templates->progs.overflow;
	return template_instantiate(prog, maps, ARRAY_SIZE(maps), spec->name, ret_fd);
}

/* -ENODEV: the CPU is offline. -ENOENT, -EOPNOTSUPP: this machine has no such counter. */
static int overflow_attach(const struct pp_spec *spec, const struct tracepoint *tp _unused_,
			   int prog_fd, unsigned cpu, int *ret_fd)
{
	_cleanup_close_ int perf_fd = -EBADF, link_fd = -EBADF;
	struct perf_event_attr attr;

	overflow_attr(spec, &attr);
	/*
	 * The period in our records is our own doing. Asked for it, the kernel gives a software
	 * event with a fixed period a sample at each count instead of at each period
	 * (perf_swevent_event()).
	 */
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	perf_fd = perf_open(&attr, cpu);
	if (perf_fd < 0)
		return perf_fd;
	link_fd = bpf_link_create(prog_fd, perf_fd, BPF_PERF_EVENT, NULL);
	if (link_fd < 0)
		return link_fd;
	if (ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	*ret_fd = TAKE_FD(link_fd);
	return 0;
}

const struct recorder recorder_overflow = {
	.kind = PP_RECORDER_OVERFLOW,
	.plan = overflow_plan,
	.load = overflow_load,
	.attach = overflow_attach,
	.per_cpu = true,
};
