// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder of events whose PMU traces into AUX areas, and of those in their groups. BPF can write
 * no such area, and a perf event traces only while somebody has its area mapped, so the keeper holds
 * events and areas (event/auxtrace.c opens them). Here a counter of each CPU that counts nothing takes
 * the event's place: it dies with its CPU and is attached again like all others, so the event has a
 * life as all others have.
 */
#include <bpf/bpf.h>
#include <string.h>
#include <time.h>

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/emit/program.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/recorders/entry.h"
#include "daemon/engine/recorders/recorder.h"
#include "proto/macro.h"
#include "proto/sideband.h"

#define RECORD_SIZE 48 /* of a sample, of which there are none */

static const struct recorder_class class = { .type = BPF_PROG_TYPE_PERF_EVENT };

/* What Linux 6.13 calls aux_action, and earlier headers a reserved word behind aux_sample_size. */
static void set_action(struct perf_event_attr *attr, uint32_t action)
{
	memcpy((char *)&attr->aux_sample_size + sizeof(attr->aux_sample_size), &action,
	       sizeof(action));
}

/* Its records end in a sample_id, and are few: they tell of the area, and of nothing else. There are
 * no samples, but perf shows what it decodes only if those of the event would have an IP. */
static void leader_attr(const struct pp_spec *spec, const struct pp_source *source,
			struct perf_event_attr *ret)
{
	perf_source_attr(source, ret);
	ret->sample_period = spec->flags & PP_EVENT_AUX_GROUP ? PP_AUX_PERIOD : spec->period;
	ret->sample_type = PP_SIDEBAND_SAMPLE_TYPE | PERF_SAMPLE_IP;
}

/* Samples as perf.data has them (client/perfdata/perfdata-attr.c), since they are copied as they are. */
#define MEMBER_SAMPLE_TYPE (PP_SIDEBAND_SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD)

/* Enabled, so that it counts whenever its leader does. */
static void member_attr(const struct pp_spec *spec, const struct pp_source *source,
			const struct tracepoint *tp, struct perf_event_attr *ret)
{
	if (source->kind == PP_SOURCE_TRACEPOINT) {
		perf_tracepoint_attr(tp, ret);
		ret->sample_type = MEMBER_SAMPLE_TYPE | PERF_SAMPLE_RAW;
	} else {
		perf_source_attr(source, ret);
		ret->sample_period = spec->period;
		ret->freq = !!(spec->flags & PP_EVENT_FREQ);
		ret->sample_type = MEMBER_SAMPLE_TYPE;
	}
	ret->disabled = 0;
	ret->write_backward = 1; /* it overwrites itself, and the newest is found first */
	if (spec->flags & PP_EVENT_CALLCHAIN) {
		ret->sample_type |= PERF_SAMPLE_CALLCHAIN;
		ret->exclude_callchain_kernel = !!(spec->flags & PP_EVENT_NO_KERNEL_CHAIN);
		ret->exclude_callchain_user = !!(spec->flags & PP_EVENT_NO_USER_CHAIN);
		ret->sample_max_stack = spec->max_stack;
	}
	if (source->aux_sample)
		ret->sample_type |= PERF_SAMPLE_AUX;
	ret->aux_sample_size = source->aux_sample;
}

void recorder_aux_attr(const struct pp_spec *spec, const struct pp_source *source,
		       const struct tracepoint *tp, struct perf_event_attr *ret)
{
	if (source->kind == PP_SOURCE_AUX)
		leader_attr(spec, source, ret);
	else
		member_attr(spec, source, tp, ret);
	set_action(ret, source->aux_action);
	ret->sample_id_all = 1;
	/* Nobody waits for wakeups. */
	ret->watermark = 1;
	ret->wakeup_watermark = UINT32_MAX;
}

static int aux_plan(struct source *source, struct failure *f _unused_)
{
	if (!(source->spec->flags & PP_EVENT_AUX))
		return -EOPNOTSUPP;
	source->recorder = &recorder_aux;
	recorder_aux_attr(source->spec, source->parsed, source->tp, &source->attr);
	source->sample_type = source->attr.sample_type & ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	source->spill_size = RECORD_SIZE;
	source->missed = PP_MISSED_UNKNOWN; /* by the PMU */
	return 0;
}

static int aux_load(const struct source *source _unused_,
		    const struct recorder_target *target _unused_, int *ret_fd,
		    struct failure *f _unused_)
{
	_cleanup_(emit_done) struct emitter e = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd;

	emit_mov_imm(&e, BPF_REG_0, 0);
	emit_exit(&e);
	if (e.error)
		return e.error;
	fd = program_load(class.type, "pp_aux", e.insns, e.n, &opts);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int aux_class(const struct source *source _unused_, struct recorder_class *ret)
{
	*ret = class;
	return 0;
}

static int aux_entry(const struct source *source _unused_, const struct recorder_slot *slot,
		     int *ret_fd)
{
	return entry_load(&class, slot, ret_fd);
}

static const char *aux_entry_class(const struct source *source _unused_)
{
	return "perf_event";
}

static int aux_attach(const struct source *source _unused_, int entry_fd,
		      const struct perf_place *at, int *ret_fd)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.disabled = 1,
	};
	_cleanup_close_ int perf_fd = perf_open_at(&attr, at);
	int link;

	if (perf_fd < 0)
		return perf_fd;
	link = bpf_link_create(entry_fd, perf_fd, BPF_PERF_EVENT, NULL);
	if (link < 0)
		return link;
	*ret_fd = link;
	return 0;
}

const struct recorder recorder_aux = {
	.kind = PP_RECORDER_AUX,
	.plan = aux_plan,
	.load = aux_load,
	.class = aux_class,
	.entry = aux_entry,
	.entry_class = aux_entry_class,
	.attach = aux_attach,
	.per_cpu = true,
};
