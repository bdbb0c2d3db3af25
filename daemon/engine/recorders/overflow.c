// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder of sampling events: software and hardware counters, breakpoints and whatever else
 * a PMU counts, that run a program each time they have counted a period (bpf/overflow.bpf.c). Owns
 * the templates of that program; knows nothing of rings' insides.
 *
 * A counter belongs to one CPU, so each CPU has a link of its own. The link keeps its perf
 * event alive; nobody else holds it.
 */
#include <bpf/bpf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "daemon/engine/bpf/overflow.h"
#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/recorders/entry.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/recorders/writer.h"
#include "overflow.skel.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

/* header, IP, TID, TIME, PERIOD; then the chain: nr, and two halves of a mark and 128 words. */
#define RECORD_SIZE 40
#define CHAIN_SIZE (8 + 2 * 129 * 8)
/* The verifier does not see that a size it cannot know is a multiple of 8. */
#define CHAIN_SLACK 8

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

/* Events at an address: what was accessed. */
static bool has_addr(const struct pp_source *source)
{
	if (source->type == PERF_TYPE_BREAKPOINT)
		return true;
	return source->type == PERF_TYPE_SOFTWARE &&
	       (source->config == PERF_COUNT_SW_PAGE_FAULTS ||
		source->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
		source->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ||
		source->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
		source->config == PERF_COUNT_SW_EMULATION_FAULTS);
}

#define CLOCKS_GO_ON (PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_IDLE)

/*
 * Whether what was counted between two samples says how many there should have been.
 *
 * The clocks go on counting in what the event leaves out (the kernel, user space, idle), and
 * only their samples are dropped there; other counters stand still meanwhile. So here what was
 * counted between two samples is not what they stand for. Guests and hypervisors, which plain
 * events leave out as perf's do, are nothing to the clocks.
 *
 * Precise samples can come several at once, after the counter has counted for all of them. And of
 * PMUs that are not the processor's own nobody knows how they count: they are believed.
 */
static bool counter_tells(const struct pp_source *source)
{
	if (is_clock(source))
		return !(source->exclude & CLOCKS_GO_ON);
	return source->type < PERF_TYPE_MAX && !source->precise_ip;
}

/* Breakpoints are for each access, unless a number of them is asked for; perf's -F means nothing
 * to them. */
static bool has_frequency(const struct pp_spec *spec, const struct pp_source *source)
{
	return spec->flags & PP_EVENT_FREQ && source->type != PERF_TYPE_BREAKPOINT;
}

/*
 * With a frequency the kernel changes a counter's period all the time and at will, so what is
 * missing cannot be counted in periods. Only the clocks turn it into a fixed period.
 */
static bool can_count_missed(const struct pp_spec *spec, const struct pp_source *source)
{
	return counter_tells(source) && (!has_frequency(spec, source) || is_clock(source));
}

static uint64_t sample_type(const struct pp_spec *spec, const struct pp_source *source)
{
	return SAMPLE_TYPE | (has_addr(source) ? PERF_SAMPLE_ADDR : 0) |
	       (has_chain(spec) ? PERF_SAMPLE_CALLCHAIN : 0);
}

/* The kernel has a frequency in the place of a period. */
static void set_period(const struct pp_spec *spec, const struct pp_source *source,
		       struct perf_event_attr *attr)
{
	if (has_frequency(spec, source)) {
		attr->freq = 1;
		attr->sample_freq = spec->period;
	} else {
		attr->sample_period = spec->flags & PP_EVENT_FREQ ? 1 : spec->period;
	}
}

static void make_attr(const struct pp_spec *spec, const struct pp_source *source,
		      struct perf_event_attr *ret)
{
	/* Of breakpoints config1 and config2 are address and length: the same words. */
	*ret = (struct perf_event_attr){
		.type = source->type,
		.size = sizeof(*ret),
		.config = source->config,
		.bp_type = source->bp_type,
		.config1 = source->config1,
		.config2 = source->config2,
		.sample_type = sample_type(spec, source),
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
		.write_backward = 1,
	};
	set_period(spec, source, ret);
}

/* ── the recorder ───────────────────────────────────────────────────────────────────────── */

static int overflow_plan(struct source *source, struct failure *f _unused_)
{
	const struct pp_source *parsed = source->parsed;

	if (source->tp || parsed->kind != PP_SOURCE_SAMPLING)
		return -EOPNOTSUPP;
	source->recorder = &recorder_overflow;
	source->sample_type = sample_type(source->spec, parsed);
	source->spill_size = RECORD_SIZE + (source->id ? 8 : 0) + (has_addr(parsed) ? 8 : 0) +
			     (has_chain(source->spec) ? CHAIN_SIZE + CHAIN_SLACK : 0);
	source->missed =
		can_count_missed(source->spec, parsed) ? PP_MISSED_COUNTED : PP_MISSED_UNKNOWN;
	source->can_nest = false;
	make_attr(source->spec, parsed, &source->attr);
	return 0;
}

static int overflow_load(const struct source *source, const struct recorder_target *target,
			 int *ret_fd, struct failure *f)
{
	_cleanup_free_ struct overflow_bpf__rodata *constants = NULL;
	_cleanup_close_ int counters = -EBADF;
	int r;

	r = templates_get();
	if (r < 0)
		return r;
	constants = writer_constants(templates->maps.rodata, templates->rodata);
	if (!constants)
		return -ENOMEM;
	constants->overflow_constants = (struct overflow_constants){
		.count_missed = can_count_missed(source->spec, source->parsed),
		.is_clock = is_clock(source->parsed),
		.has_addr = has_addr(source->parsed),
	};
	r = writer_scratch(sizeof(struct overflow_counter), &counters);
	if (r < 0)
		return r;

	const struct writer writer = {
		.prog = has_chain(source->spec) ? templates->progs.overflow_chain
						: templates->progs.overflow,
		.rings = templates->maps.rings,
		.wakeups = templates->maps.wakeups,
		.ringless = templates->maps.ringless,
		.rodata = templates->maps.rodata,
		.constants = constants,
		.ring = &constants->ring_constants,
		.maps = { { bpf_map__fd(templates->maps.counters), counters } },
		.n_maps = 1,
		.payload_size = sizeof(struct overflow_payload),
	};

	return writer_load(&writer, source, target, ret_fd, f);
}

static int overflow_entry(const struct source *source _unused_, const struct recorder_slot *slot,
			  int *ret_fd)
{
	return entry_load(BPF_PROG_TYPE_PERF_EVENT, 0, 0, slot, 0, ret_fd);
}

static const char *overflow_entry_class(const struct source *source _unused_)
{
	return "perf_event";
}

/* -ENODEV: the CPU is offline. -ENOENT, -EOPNOTSUPP: this machine has no such counter. */
static int overflow_attach(const struct source *source, int entry_fd, unsigned cpu, int *ret_fd)
{
	_cleanup_close_ int perf_fd = -EBADF, link_fd = -EBADF;
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	struct perf_event_attr attr;

	make_attr(source->spec, source->parsed, &attr);
	/*
	 * The period in our records is our own doing. Asked for it, the kernel gives a software
	 * event with a fixed period a sample at each count instead of at each period
	 * (perf_swevent_event()). So is the call chain. Asked for it, the kernel hands out the one
	 * that it has, and it has none if the program that it calls, which is the entry, asks for
	 * none (bpf_overflow_handler()).
	 */
	attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN);
	/*
	 * What a software event has asked for, the time above all, others who count the same are
	 * given as theirs, of whatever clock it is (do_perf_sw_event(); two perfs do that to each
	 * other on 6.18). Processors' counters must ask for a time of a clock: else precise ones
	 * come in batches, of which a program sees the last (large PEBS, intel_pmu_hw_config()).
	 */
	if (attr.type == PERF_TYPE_SOFTWARE) {
		attr.sample_type &= PERF_SAMPLE_ADDR;
		attr.use_clockid = 0;
		attr.clockid = 0;
	}
	perf_fd = perf_open(&attr, cpu);
	if (perf_fd < 0)
		return perf_fd;
	/* Of two counters of a CPU the newer one counts: see overflow.bpf.c. */
	opts.perf_event.bpf_cookie = pp_clock_ns(CLOCK_MONOTONIC);
	link_fd = bpf_link_create(entry_fd, perf_fd, BPF_PERF_EVENT, &opts);
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
	.entry = overflow_entry,
	.entry_class = overflow_entry_class,
	.attach = overflow_attach,
	.per_cpu = true,
};
