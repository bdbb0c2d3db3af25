// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the sources of a parsed event, and their filters. Pure. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/order-internal.h"
#include "daemon/order.h"
#include "daemon/text.h"

#define EXCLUDE_KNOWN                                                            \
	(PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV | PP_EXCLUDE_HOST | \
	 PP_EXCLUDE_GUEST | PP_EXCLUDE_IDLE)

#define DEREFERENCES_MAX 4
#define ARGUMENTS_MAX 6	 /* registers in any calling convention */
#define REGISTERS_MAX 64 /* words in any machine's struct pt_regs */
#define PMU_TYPE_MAX (1U << 16)

static bool is_made_of(const char *field, size_t size, const char *others)
{
	if (!*field || !order_is_terminated(field, size))
		return false;
	for (; *field; field++)
		if (!(*field >= 'a' && *field <= 'z') && !(*field >= 'A' && *field <= 'Z') &&
		    !(*field >= '0' && *field <= '9') && !strchr(others, *field))
			return false;
	return true;
}

/* A tracepoint's system or name, or a glob of these: it must not leave tracefs. */
static bool tp_name_is_good(const char *field)
{
	return is_made_of(field, PP_TP_NAME_SIZE, "_-*?[]!");
}

/* Fields of other kinds must be 0: no recorder looks at them. */
static bool has_no_counter(const struct pp_source *s)
{
	return !s->type && !s->config && !s->config1 && !s->config2 && !s->bp_type && !s->exclude &&
	       !s->precise_ip && !s->any_cpu;
}

static bool has_no_probe(const struct pp_source *s)
{
	return !s->offset && !s->ref_ctr_offset && !*s->path;
}

static bool tracepoint_is_good(const struct pp_source *s)
{
	return tp_name_is_good(s->system) && tp_name_is_good(s->name) && has_no_counter(s) &&
	       has_no_probe(s);
}

/* A hardware event's config; its upper half is the PMU on machines with several kinds of CPUs. */
static bool hardware_is_known(uint64_t config)
{
	return (uint32_t)config < PERF_COUNT_HW_MAX && config >> 32 < PMU_TYPE_MAX;
}

static bool cache_is_known(uint64_t config)
{
	uint32_t event = config;

	return (event & 0xff) < PERF_COUNT_HW_CACHE_MAX &&
	       (event >> 8 & 0xff) < PERF_COUNT_HW_CACHE_OP_MAX &&
	       (event >> 16 & 0xff) < PERF_COUNT_HW_CACHE_RESULT_MAX && !(event >> 24) &&
	       config >> 32 < PMU_TYPE_MAX;
}

static bool breakpoint_is_good(const struct pp_source *s)
{
	return !s->config && s->bp_type >= 1 && s->bp_type <= 7 && s->config2 >= 1 &&
	       s->config2 <= 8;
}

/* Does this event count anything? The kernel judges a PMU's other numbers. */
static bool counter_is_known(const struct pp_source *s)
{
	if (s->type == PERF_TYPE_BREAKPOINT)
		return breakpoint_is_good(s);
	if (s->bp_type)
		return false;
	if (s->type == PERF_TYPE_RAW || (s->type >= PERF_TYPE_MAX && s->type < PMU_TYPE_MAX))
		return true;
	switch (s->type) {
	case PERF_TYPE_HARDWARE:
		return hardware_is_known(s->config);
	case PERF_TYPE_HW_CACHE:
		return cache_is_known(s->config);
	case PERF_TYPE_SOFTWARE:
		return s->config <= PERF_COUNT_SW_CGROUP_SWITCHES &&
		       s->config != PERF_COUNT_SW_DUMMY && s->config != PERF_COUNT_SW_BPF_OUTPUT;
	default:
		return false;
	}
}

static bool sampling_is_good(const struct pp_source *s)
{
	return !*s->system && !*s->name && has_no_probe(s) && counter_is_known(s) &&
	       !(s->exclude & ~EXCLUDE_KNOWN) && s->precise_ip <= 3 && s->any_cpu <= 1;
}

/* The broker knows which PMUs have AUX areas; the kernel judges all their numbers. */
static bool aux_is_good(const struct pp_source *s)
{
	return !*s->system && !*s->name && has_no_probe(s) && s->type >= PERF_TYPE_MAX &&
	       s->type < PMU_TYPE_MAX && !s->bp_type && !(s->exclude & ~EXCLUDE_KNOWN) &&
	       !s->precise_ip && s->any_cpu <= 1 && !s->n_filter;
}

/* ── groups of an AUX area ──────────────────────────────────────────────────────────────── */

static bool leader_is_good(const struct pp_source *s)
{
	return s->kind == PP_SOURCE_AUX && !s->aux_sample &&
	       (!s->aux_action || s->aux_action == PP_AUX_START_PAUSED);
}

bool pp_source_can_be_beside(const struct pp_source *s)
{
	if (s->kind == PP_SOURCE_TRACEPOINT)
		return strcmp(s->system, "ftrace") != 0;
	if (s->kind != PP_SOURCE_SAMPLING || s->type == PERF_TYPE_BREAKPOINT)
		return false;
	return s->type != PERF_TYPE_SOFTWARE || s->config == PERF_COUNT_SW_CPU_CLOCK ||
	       s->config == PERF_COUNT_SW_TASK_CLOCK;
}

/* The kernel writes its records, so no program of ours filters them, and each is one perf event. */
static bool member_is_good(const struct pp_source *s)
{
	bool is_one =
		s->kind == PP_SOURCE_SAMPLING ||
		(s->kind == PP_SOURCE_TRACEPOINT && !pp_is_glob(s->system) && !pp_is_glob(s->name));

	return is_one && pp_source_can_be_beside(s) && !s->n_filter &&
	       s->aux_sample <= PP_AUX_SAMPLE_MAX && s->aux_sample % 8 == 0 &&
	       pp_source_has_aux_term(s) &&
	       (!s->aux_action || s->aux_action == PP_AUX_PAUSE || s->aux_action == PP_AUX_RESUME);
}

bool order_group_is_good(const struct pp_parsed *parsed, uint32_t flags)
{
	bool is_aux = flags & PP_EVENT_AUX;

	if (is_aux != leader_is_good(&parsed->sources[0]) ||
	    !!(flags & PP_EVENT_AUX_GROUP) != (is_aux && parsed->n_sources > 1))
		return false;
	for (uint32_t i = is_aux; i < parsed->n_sources; i++)
		if (is_aux ? !member_is_good(&parsed->sources[i])
			   : parsed->sources[i].kind == PP_SOURCE_AUX ||
				     pp_source_has_aux_term(&parsed->sources[i]))
			return false;
	return true;
}

/* ── probes ─────────────────────────────────────────────────────────────────────────────── */

static bool place_is_good(const struct pp_probe_arg *a, bool is_return)
{
	switch (a->place) {
	case PP_PROBE_REGISTER:
		return a->number < REGISTERS_MAX && !a->value;
	case PP_PROBE_ARGUMENT:
		return a->number >= 1 && a->number <= ARGUMENTS_MAX && !a->value;
	case PP_PROBE_RETURN:
		return is_return && !a->number && !a->value;
	case PP_PROBE_CONSTANT:
		return !a->number;
	default:
		return false;
	}
}

static bool argument_is_good(const struct pp_probe_arg *a, bool is_return)
{
	bool begins_well = *a->name < '0' || *a->name > '9';

	return is_made_of(a->name, PP_PROBE_NAME_SIZE, "_") && begins_well &&
	       place_is_good(a, is_return) && a->dereferences <= DEREFERENCES_MAX &&
	       (a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8) &&
	       a->is_signed <= 1 && a->is_hex <= 1 && a->is_string <= 1;
}

static bool arguments_are_good(const struct pp_source *s)
{
	if (s->is_return > 1 || s->n_args > PP_PROBE_ARGS_MAX)
		return false;
	for (uint32_t i = 0; i < s->n_args; i++) {
		if (!argument_is_good(&s->args[i], s->is_return))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (!strcmp(s->args[k].name, s->args[i].name))
				return false;
	}
	return true;
}

/* A symbol of the kernel: compilers put dots into them. */
static bool kprobe_is_good(const struct pp_source *s)
{
	return !*s->system && is_made_of(s->name, PP_TP_NAME_SIZE, "_.$") && has_no_counter(s) &&
	       !*s->path && !s->ref_ctr_offset && s->offset <= UINT32_MAX && arguments_are_good(s);
}

static bool uprobe_is_good(const struct pp_source *s)
{
	return !*s->system && order_is_printable(s->name, PP_TP_NAME_SIZE) && has_no_counter(s) &&
	       s->path[0] == '/' && order_is_printable(s->path, PP_PATH_SIZE) &&
	       s->offset <= INT64_MAX && s->ref_ctr_offset <= UINT32_MAX && arguments_are_good(s);
}

static bool source_is_good(const struct pp_source *s)
{
	if (!order_is_printable(s->text, sizeof(s->text)))
		return false;
	switch (s->kind) {
	case PP_SOURCE_TRACEPOINT:
		return tracepoint_is_good(s);
	case PP_SOURCE_SAMPLING:
		return sampling_is_good(s);
	case PP_SOURCE_KPROBE:
		return kprobe_is_good(s);
	case PP_SOURCE_UPROBE:
		return uprobe_is_good(s);
	case PP_SOURCE_AUX:
		return aux_is_good(s);
	default:
		return false;
	}
}

/* A source's filter: a tree within the parsed event's nodes. Several sources may share it. */
static bool filter_is_good(const struct pp_parsed *parsed, uint32_t first, uint32_t n)
{
	if (first > parsed->n_nodes || n > parsed->n_nodes - first)
		return false;
	return n == 0 || pp_filter_check(parsed->nodes + first, n) == 0;
}

int pp_parsed_check(const struct pp_parsed *parsed, bool alone)
{
	uint32_t n = parsed->n_sources;

	if (parsed->n_nodes > PP_FILTER_NODES_MAX)
		return -EBADMSG;
	if (!alone)
		return n == 0 && filter_is_good(parsed, 0, parsed->n_nodes) ? 0 : -EBADMSG;
	if (n == 0 || n > PP_TERMS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++)
		if (!source_is_good(&parsed->sources[i]) ||
		    !filter_is_good(parsed, parsed->sources[i].filter, parsed->sources[i].n_filter))
			return -EBADMSG;
	return 0;
}
