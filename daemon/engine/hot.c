// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder for hot tracepoints: tp_btf programs in C (bpf/hot.bpf.c). Owns the loaded
 * copies of them, the templates. Knows nothing of rings' insides.
 *
 * A program is used only where the running kernel says the same as its source (layout.h). In
 * any other case plan() says -EOPNOTSUPP, and the generic recorder takes the event.
 */
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/perf_event.h>

#include "daemon/engine/kernel.h"
#include "daemon/engine/layout.h"
#include "daemon/engine/recorder.h"
#include "daemon/engine/template.h"
#include "daemon/log.h"
#include "hot.skel.h"
#include "proto/macro.h"

/*
 * The templates, loaded when first asked for and kept, since that takes tens of milliseconds:
 * all of them in one object, or, if the kernel refuses that, each in its own.
 */
static struct {
	bool tried;
	struct hot_bpf *of[LAYOUTS_N]; /* the object with its program; or NULL */
} templates;

static struct bpf_program *program_of(const struct hot_bpf *skel, const struct layout *layout)
{
	return bpf_object__find_program_by_name(skel->obj, layout->program);
}

/* Loads the programs of the layouts [from, to) that fit; NULL with errno if the kernel
 * refuses one. */
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

static void load_one_by_one(const bool *fits)
{
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		if (!fits[i])
			continue;
		templates.of[i] = load_layouts(fits, i, i + 1);
		if (!templates.of[i])
			log_warning("The kernel refused the recorder for %s:%s (%s); it is "
				    "recorded like any other tracepoint.",
				    layouts[i].system, layouts[i].name, strerror(errno));
	}
}

static void templates_load(void)
{
	bool fits[LAYOUTS_N], any = false;
	struct btf *btf = btf__load_vmlinux_btf();
	struct hot_bpf *skel;

	if (!btf) {
		log_info("This kernel has no BTF (%s); hot tracepoints are recorded like any "
			 "other.",
			 strerror(errno));
		return;
	}
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		fits[i] = layout_fits_prototype(&layouts[i], btf);
		any |= fits[i];
	}
	btf__free(btf);
	if (!any)
		return;

	skel = load_layouts(fits, 0, LAYOUTS_N);
	if (!skel) {
		load_one_by_one(fits);
		return;
	}
	for (size_t i = 0; i < LAYOUTS_N; i++)
		templates.of[i] = fits[i] ? skel : NULL;
}

/* 0 and the index of the layout that fits this tracepoint; -EOPNOTSUPP: there is none. */
static int find_layout(const struct tracepoint *tp, size_t *ret)
{
	for (size_t i = 0; i < LAYOUTS_N; i++) {
		if (!layout_fits_format(&layouts[i], tp))
			continue;
		if (!templates.tried) {
			templates.tried = true;
			templates_load();
		}
		if (!templates.of[i])
			continue;
		*ret = i;
		return 0;
	}
	return -EOPNOTSUPP;
}

/* ── the recorder ───────────────────────────────────────────────────────────────────────── */

static int hot_plan(const struct pp_spec *spec _unused_, const struct tracepoint *tp,
		    struct recorder_plan *ret)
{
	size_t i;
	int r;

	/* Before 6.1 a tp_btf program can nest in itself (05b24ff9b2cf gave it a guard). */
	if (!tp || !kernel_is_at_least(6, 1))
		return -EOPNOTSUPP;
	r = find_layout(tp, &i);
	if (r < 0)
		return r;
	*ret = (struct recorder_plan){
		.recorder = PP_RECORDER_TP_BTF,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.spill_size = layouts[i].record_size,
		.missed_unknown = 0, /* recursion_misses counts them */
	};
	return 0;
}

static int hot_load(const struct pp_spec *spec, const struct tracepoint *tp,
		    const struct recorder_rings *rings, int *ret_fd)
{
	_cleanup_free_ struct hot_bpf__rodata *constants = NULL;
	_cleanup_close_ int constants_fd = -EBADF;
	const struct hot_bpf *skel;
	size_t i, size;
	int r;

	r = find_layout(tp, &i);
	if (r < 0)
		return r;
	if (rings->spill_size < layouts[i].record_size)
		return -EINVAL;

	/* More than the skeleton shows: static constants are in there, too. */
	skel = templates.of[i];
	size = bpf_map__value_size(skel->maps.rodata);
	constants = malloc(size);
	if (!constants)
		return -ENOMEM;
	memcpy(constants, skel->rodata, size);
	constants->ring_data_mask = rings->data_size - 1;
	constants->ring_header_size = rings->header_size;
	constants->tracepoint_id = tp->id;
	r = template_constants(constants, size, &constants_fd);
	if (r < 0)
		return r;

	const struct template_map maps[] = {
		{ bpf_map__fd(skel->maps.rings), rings->fd },
		{ bpf_map__fd(skel->maps.rodata), constants_fd },
	};

	return template_instantiate(program_of(skel, &layouts[i]), maps, ARRAY_SIZE(maps),
				    spec->name, ret_fd);
}

/* A tp_btf link has no CPU: the program runs wherever the tracepoint fires. */
static int hot_attach(const struct pp_spec *spec _unused_, const struct tracepoint *tp _unused_,
		      int prog_fd, unsigned cpu _unused_, int *ret_fd)
{
	int fd = bpf_raw_tracepoint_open(NULL, prog_fd);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

const struct recorder recorder_hot = {
	.kind = PP_RECORDER_TP_BTF,
	.plan = hot_plan,
	.load = hot_load,
	.attach = hot_attach,
	.per_cpu = false,
};
