// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder of sampling events: software and hardware counters, breakpoints and all other PMU
 * events, which run a program after each counted period (bpf/overflow.bpf.c). Owns the templates of
 * that program; knows nothing of rings' insides.
 *
 * A counter belongs to one CPU, so each CPU has its own link. Only the link holds its perf event.
 */
#include <bpf/bpf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "daemon/engine/bpf/overflow.h"
#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/emit/chain-emit.h"
#include "daemon/engine/emit/user-dump.h"
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
/* The verifier does not see that a variable size is a multiple of 8. */
#define CHAIN_SLACK 8

/* The templates, loaded at first use and kept: loading takes tens of milliseconds. */
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

/* Whether samples have the accessed address. Those of adopted perf events have none: the kernel sets that field only
 * for perf events that ask for it; otherwise it holds what was on the kernel's stack. */
static bool has_addr(const struct pp_spec *spec, const struct pp_source *source)
{
	if (spec->flags & PP_EVENT_ADOPTED)
		return false;
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
 * Whether the count between two samples tells how many samples there should have been.
 *
 * The clocks keep counting in the modes that the event excludes (the kernel, user space, idle), and
 * only their samples are dropped there, so their count does not tell; other counters stop
 * meanwhile. Excluding guests and hypervisors, as plain events do like perf's, does not affect the
 * clocks.
 *
 * Precise samples can come in batches, after the counter has counted for all of them. Samples of
 * PMUs that are not the processor's own are trusted: how these count is unknown.
 */
static bool counter_tells(const struct pp_source *source)
{
	if (is_clock(source))
		return !(source->exclude & CLOCKS_GO_ON);
	return source->type < PERF_TYPE_MAX && !source->precise_ip;
}

/* A breakpoint samples each access unless a period is given; perf's -F does not apply to it. */
static bool has_frequency(const struct pp_spec *spec, const struct pp_source *source)
{
	return spec->flags & PP_EVENT_FREQ && source->type != PERF_TYPE_BREAKPOINT;
}

/*
 * With a frequency the kernel changes a counter's period all the time, so missing samples cannot be
 * counted in periods. Only the clocks turn a frequency into a fixed period. Adopted counters may have any
 * period. Several counters of tasks and of their children can count on a CPU; that of a cgroup stops while others run.
 */
static bool can_count_missed(const struct pp_spec *spec, const struct pp_source *source)
{
	return counter_tells(source) && !(spec->flags & (PP_EVENT_ADOPTED | PP_EVENT_BOUND)) &&
	       (!has_frequency(spec, source) || is_clock(source));
}

static uint64_t sample_type(const struct pp_spec *spec, const struct pp_source *source)
{
	return SAMPLE_TYPE | (has_addr(spec, source) ? PERF_SAMPLE_ADDR : 0) |
	       (has_chain(spec) ? PERF_SAMPLE_CALLCHAIN : 0) |
	       (spec->stack_user ? USER_DUMP_SAMPLE_TYPE : 0);
}

/* Bytes of a record, at most, without registers and stack of user space. */
static uint32_t front_size(const struct source *source)
{
	return RECORD_SIZE + (source->id ? 8 : 0) +
	       (has_addr(source->spec, source->parsed) ? 8 : 0) +
	       (has_chain(source->spec) ? CHAIN_SIZE + CHAIN_SLACK : 0);
}

static uint32_t stack_size(const struct source *source)
{
	return user_dump_stack(source->spec->stack_user, front_size(source));
}

/* In the attributes a frequency takes the place of the period. */
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
	perf_source_attr(source, ret);
	ret->sample_type = sample_type(spec, source);
	ret->write_backward = 1;
	chain_describe(spec, ret);
	user_dump_describe(spec, ret);
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
	source->spill_size = front_size(source) + user_dump_size(stack_size(source));
	source->missed =
		can_count_missed(source->spec, parsed) ? PP_MISSED_COUNTED : PP_MISSED_UNKNOWN;
	source->can_nest = false;
	make_attr(source->spec, parsed, &source->attr);
	return 0;
}

static const struct bpf_program *program_of(const struct pp_spec *spec)
{
	if (spec->stack_user)
		return templates->progs.overflow_user;
	return has_chain(spec) ? templates->progs.overflow_chain : templates->progs.overflow;
}

static int overflow_load(const struct source *source, const struct recorder_target *target,
			 int *ret_fd, struct failure *f)
{
	_cleanup_free_ struct overflow_bpf__rodata *constants = NULL;
	_cleanup_close_ int own = -EBADF;
	int *counters = target->shared ?: &own;
	int r;

	r = templates_get();
	if (r < 0)
		return r;
	constants = writer_constants(templates->maps.rodata, templates->rodata);
	if (!constants)
		return -ENOMEM;
	constants->overflow_constants = (struct overflow_constants){
		.chain_half = (uint64_t)CHAIN_HALF_OF(chain_frames(source->spec)),
		.count_missed = can_count_missed(source->spec, source->parsed),
		.is_clock = is_clock(source->parsed),
		.has_addr = has_addr(source->spec, source->parsed),
		.drops = target->drops,
		.chain_kernel = !!(chain_halves(source->spec) & CHAIN_KERNEL),
		.chain_user = !!(chain_halves(source->spec) & CHAIN_USER),
		.user_stack = stack_size(source),
	};
	r = *counters < 0 ? writer_scratch(sizeof(struct overflow_counter), counters) : 0;
	if (r < 0)
		return r;

	const struct writer writer = {
		.prog = program_of(source->spec),
		.rings = templates->maps.rings,
		.wakeups = templates->maps.wakeups,
		.sending = templates->maps.sending,
		.ringless = templates->maps.ringless,
		.tape = templates->maps.tape,
		.firings = templates->maps.firings,
		.rodata = templates->maps.rodata,
		.constants = constants,
		.ring = &constants->ring_constants,
		.maps = { { .template_fd = bpf_map__fd(templates->maps.counters),
			    .fd = *counters } },
		.n_maps = 1,
		.payload_size = sizeof(struct overflow_payload),
	};

	return writer_load(&writer, source, target, ret_fd, f);
}

static const struct recorder_class class = { .type = BPF_PROG_TYPE_PERF_EVENT };

static int overflow_class(const struct source *source _unused_, struct recorder_class *ret)
{
	*ret = class;
	return 0;
}

/*
 * Its creator's perf event may ask for call chains. Then the kernel takes one only if the program that it
 * calls asks for chains (6.1, 6.2), and without that our program would get a pointer that was never set; and it
 * refuses perf events whose chain a program cannot have.
 */
static int overflow_entry(const struct source *source, const struct recorder_slot *slot,
			  int *ret_fd)
{
	bool is_adopted = source->spec->flags & PP_EVENT_ADOPTED;

	return is_adopted && has_chain(source->spec) ? entry_load_chain(&class, slot, ret_fd)
						     : entry_load(&class, slot, ret_fd);
}

static const char *overflow_entry_class(const struct source *source _unused_)
{
	return "perf_event";
}

/* -ENODEV: the CPU is offline. -ENOENT, -EOPNOTSUPP: this machine has no such counter. */
static int overflow_attach(const struct source *source, int entry_fd, const struct perf_place *at,
			   int *ret_fd)
{
	_cleanup_close_ int perf_fd = -EBADF, link_fd = -EBADF;
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	struct perf_event_attr attr;

	make_attr(source->spec, source->parsed, &attr);
	attr.inherit = at->inherit;
	/*
	 * Our program writes the period and the call chain itself. Asked for the period, the kernel
	 * gives a software event with a fixed period a sample at each count, not at each period
	 * (perf_swevent_event()). Asked for the chain, the kernel hands out the one that it has,
	 * and has none if the program that it calls, which is the entry, asks for none
	 * (bpf_overflow_handler()). Asked for registers and stack, it would copy them once more.
	 */
	attr.sample_type &=
		~(uint64_t)(PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | USER_DUMP_SAMPLE_TYPE);
	/*
	 * A software event passes the fields that it asked for, above all the time, to other events
	 * that count the same, whatever their clock (do_perf_sw_event(); two perfs do that to each
	 * other on 6.18). Processors' counters must ask for a time and a clock: otherwise precise
	 * samples come in batches, of which a program sees only the last (large PEBS,
	 * intel_pmu_hw_config()).
	 */
	if (attr.type == PERF_TYPE_SOFTWARE) {
		attr.sample_type &= PERF_SAMPLE_ADDR;
		attr.use_clockid = 0;
		attr.clockid = 0;
	}
	perf_fd = perf_open_at(&attr, at);
	if (perf_fd < 0)
		return perf_fd;
	/* If a CPU has two counters the newer one counts: see overflow.bpf.c. */
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
	.class = overflow_class,
	.entry = overflow_entry,
	.entry_class = overflow_entry_class,
	.attach = overflow_attach,
	.counts_missed = true,
	.per_cpu = true,
};
