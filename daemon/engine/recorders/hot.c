// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder for hot tracepoints: tp_btf programs in C (bpf/hot.bpf.c). Owns their loaded copies,
 * the templates. Knows nothing of rings' insides.
 *
 * A program is used only where the running kernel matches its source (layout.h). Otherwise plan()
 * returns -EOPNOTSUPP, and the generic recorder takes the event.
 */
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/perf_event.h>

#include "daemon/engine/bpf/hot.h"
#include "daemon/engine/bpf/payload.h"
#include "daemon/engine/bpf/ring.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/recorders/entry.h"
#include "daemon/engine/recorders/layout.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/recorders/writer.h"
#include "daemon/log.h"
#include "hot.skel.h"
#include "proto/macro.h"

/*
 * The templates, loaded at first use and kept, since loading takes tens of milliseconds: all in one
 * object, or, if the kernel refuses that, each in its own.
 */
static struct {
	bool tried;
	struct hot_bpf *of[LAYOUTS_N]; /* the object with its program; or NULL */
} templates;

static struct bpf_program *program_of(const struct hot_bpf *skel, const struct layout *layout)
{
	return bpf_object__find_program_by_name(skel->obj, layout->program);
}

/* Loads the programs of the layouts [from, to) that fit; NULL with errno if the kernel refuses
 * one. */
static struct hot_bpf *load_layouts(const bool *fits, size_t from, size_t to)
{
	struct hot_bpf *skel = hot_bpf__open();
	int r;

	if (!skel)
		return NULL;
	for (size_t i = 0; i < LAYOUTS_N; i++)
		bpf_program__set_autoload(program_of(skel, &layouts[i]),
					  fits[i] && i >= from && i < to);
	r = hot_bpf__load(skel);
	if (r < 0) {
		hot_bpf__destroy(skel);
		errno = -r;
		return NULL;
	}
	return skel;
}

static int load_one_by_one(const bool *fits)
{
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		if (!fits[i] || templates.of[i])
			continue;
		templates.of[i] = load_layouts(fits, i, i + 1);
		if (!templates.of[i] && kernel_lacks_for_now(-errno))
			return -errno;
		if (!templates.of[i])
			log_warning("The kernel refused the faster recorder for tracepoint %s:%s "
				    "(%s), which is recorded like any other.",
				    layouts[i].system, layouts[i].name, strerror(errno));
	}
	return 0;
}

/* Whether a hot program records it exactly on this kernel: events are missed only for a moment. */
static bool is_exact(const char *system, const char *name)
{
	return !layout_is_preemptible(system, name) || !kernel_preempts_tracepoints();
}

/* Whether any layout of the tracepoint fits. */
static bool any_fits(const bool *fits, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUTS_N; i++)
		if (fits[i] && !strcmp(layouts[i].name, layout->name))
			return true;
	return false;
}

/* Logs the tracepoints that this kernel has, but that no program fits. */
static void tell_misfits(const struct btf *btf, const bool *fits)
{
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		const struct layout *layout = &layouts[i];

		if (i > 0 && !strcmp(layout->name, layouts[i - 1].name))
			continue;
		if (!is_exact(layout->system, layout->name))
			log_info("Tracepoint %s:%s is recorded like any other: this kernel may "
				 "preempt the faster recorder, which would miss records.",
				 layout->system, layout->name);
		else if (!any_fits(fits, layout) && layout_is_there(layout, btf))
			log_notice("Tracepoint %s:%s is recorded like any other: this kernel calls "
				   "it with parameters that the faster recorder does not know.",
				   layout->system, layout->name);
	}
}

/* 0, whatever the kernel refuses; what is passing is tried again at the next event. */
static int templates_load(void)
{
	bool fits[LAYOUTS_N], any = false;
	const struct btf *btf = kernel_btf();
	struct hot_bpf *skel;

	if (!btf && kernel_lacks_for_now(-errno))
		return -errno;
	if (!btf) {
		log_info("This kernel has no BTF (%s); hot tracepoints are recorded like any "
			 "other.",
			 strerror(errno));
		return 0;
	}
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		fits[i] = layout_fits_prototype(&layouts[i], btf);
		any |= fits[i];
	}
	tell_misfits(btf, fits);
	kernel_btf_forget();
	if (!any)
		return 0;

	skel = load_layouts(fits, 0, LAYOUTS_N);
	if (!skel)
		return kernel_lacks_for_now(-errno) ? -errno : load_one_by_one(fits);
	for (size_t i = 0; i < LAYOUTS_N; i++)
		templates.of[i] = fits[i] ? skel : NULL;
	return 0;
}

/* Finds the layout of this tracepoint. -EOPNOTSUPP: there is none. Another -errno: not now. */
static int find_layout(const struct tracepoint *tp, size_t *ret)
{
	int r;

	for (size_t i = 0; i < LAYOUTS_N; i++) {
		if (!layout_fits_format(&layouts[i], tp))
			continue;
		if (!templates.tried) {
			r = templates_load();
			if (r < 0)
				return r;
			templates.tried = true;
		}
		if (!templates.of[i])
			continue;
		*ret = i;
		return 0;
	}
	return -EOPNOTSUPP;
}

/* ── the recorder ───────────────────────────────────────────────────────────────────────── */

static int hot_plan(struct source *source, struct failure *f _unused_)
{
	size_t i;
	int r;

	/* Before 6.1 a tp_btf program can nest in itself (05b24ff9b2cf added a guard). Call chains begin
	 * where perf's do only with perf's registers, which such a program has not. */
	if (!source->tp || !kernel_is_at_least(6, 1) || source->spec->flags & PP_EVENT_CALLCHAIN)
		return -EOPNOTSUPP;
	r = find_layout(source->tp, &i);
	if (r < 0)
		return r;
	source->recorder = &recorder_hot;
	source->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	source->spill_size = layouts[i].record_size + (source->id ? HOT_IDENTIFIER_SIZE : 0);
	source->missed = PP_MISSED_COUNTED; /* by the entry's recursion_misses */
	source->can_nest = false;
	perf_tracepoint_attr(source->tp, &source->attr);
	return 0;
}

bool hot_is_exact(const struct tracepoint *tp)
{
	return is_exact(tp->system, tp->name);
}

static int hot_load(const struct source *source, const struct recorder_target *target, int *ret_fd,
		    struct failure *f)
{
	_cleanup_free_ struct hot_bpf__rodata *constants = NULL;
	_cleanup_close_ int scratch = -EBADF;
	const struct hot_bpf *skel;
	size_t i;
	int r;

	r = find_layout(source->tp, &i);
	if (r < 0)
		return r;
	skel = templates.of[i];
	constants = writer_constants(skel->maps.rodata, skel->rodata);
	if (!constants)
		return -ENOMEM;
	constants->hot_constants.tracepoint_id = source->tp->id;
	/* See hot_open(). */
	if (recorder_hooks(source, target) || (target->guard && target->guard->closes)) {
		r = writer_scratch(HOT_SCRATCH_OFFSET + source->spill_size, &scratch);
		if (r < 0)
			return r;
	}

	const struct writer writer = {
		.prog = program_of(skel, &layouts[i]),
		.rings = skel->maps.rings,
		.wakeups = skel->maps.wakeups,
		.sending = skel->maps.sending,
		.ringless = skel->maps.ringless,
		.tape = skel->maps.tape,
		.firings = skel->maps.firings,
		.rodata = skel->maps.rodata,
		.constants = constants,
		.ring = &constants->ring_constants,
		.maps = { { .template_fd = bpf_map__fd(skel->maps.scratch), .fd = scratch } },
		.n_maps = 1,
		.payload_size = layouts[i].record_size - HOT_PAYLOAD_OFFSET,
	};

	return writer_load(&writer, source, target, ret_fd, f);
}

static int hot_class(const struct source *source, struct recorder_class *ret)
{
	size_t i;
	int r = find_layout(source->tp, &i);

	*ret = (struct recorder_class){
		.type = BPF_PROG_TYPE_TRACING,
		.expected = BPF_TRACE_RAW_TP,
	};
	return r < 0 ? r
		     : template_attach_target(program_of(templates.of[i], &layouts[i]),
					      &ret->attach_btf_id);
}

static int hot_entry(const struct source *source, const struct recorder_slot *slot, int *ret_fd)
{
	struct recorder_class class;
	int r = hot_class(source, &class);

	return r < 0 ? r : entry_load(&class, slot, ret_fd);
}

/* Newer kernels allow tail calls only between programs with the same attach target. */
static const char *hot_entry_class(const struct source *source)
{
	size_t i;

	if (find_layout(source->tp, &i) < 0)
		return "tp_btf"; /* impossible: plan() has found one */
	return bpf_program__section_name(program_of(templates.of[i], &layouts[i]));
}

/* A tp_btf link has no CPU: the entry runs on all of them. */
static int hot_attach(const struct source *source _unused_, int entry_fd,
		      const struct perf_place *at _unused_, int *ret_fd)
{
	int fd = bpf_raw_tracepoint_open(NULL, entry_fd);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

const struct recorder recorder_hot = {
	.kind = PP_RECORDER_TP_BTF,
	.plan = hot_plan,
	.load = hot_load,
	.class = hot_class,
	.entry = hot_entry,
	.entry_class = hot_entry_class,
	.attach = hot_attach,
	.per_cpu = false,
};
