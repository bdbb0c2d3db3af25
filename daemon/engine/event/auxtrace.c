// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens the perf events of an event with AUX areas, each with its group. Must not know who maps them. See
 * auxtrace.h. */
#include "daemon/engine/event/auxtrace.h"

#include <string.h>

#include "daemon/cpus.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/links.h"
#include "proto/macro.h"

static int read_event(uint64_t id, struct pp_event *event, struct pp_parsed **parsed,
		      struct failure *f)
{
	_cleanup_close_ int meta = -EBADF;
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(id, path, f);

	if (r < 0)
		return r;
	meta = pins_get(path, "meta");
	r = meta < 0 ? meta : meta_read_all(meta, event, parsed, NULL, NULL, NULL);
	/* ENOENT says that there is no such event. */
	if (r < 0)
		return fail(f, r == -ENOENT ? ENODATA : -r, "Cannot read the event in '%s': %s.",
			    path, strerror(-r));
	if (event->spec.flags & PP_EVENT_AUX)
		return 0;
	return fail(f, EINVAL, "%s/%s has no AUX areas.", event->spec.ns, event->spec.name);
}

static int cannot_pause(const struct pp_source *source, struct failure *f)
{
	return fail(
		f, EOPNOTSUPP,
		"The kernel or the PMU cannot do what '%s' asks for: events pause and resume traces "
		"since Linux 6.13, and those of PMUs that can; leave aux-action out.",
		source->text);
}

static int member_failure(const struct pp_source *source, unsigned cpu, int r, struct failure *f)
{
	bool is_refused = r == -EINVAL || r == -EOPNOTSUPP;

	if (is_refused && source->aux_action)
		return cannot_pause(source, f);
	if (is_refused && source->aux_sample)
		return fail(
			f, EOPNOTSUPP,
			"The PMU gives no samples of its trace, which '%s' asks for, or the event "
			"cannot be in its group; leave it out.",
			source->text);
	return fail(f, -r, "'%s' cannot be opened beside the trace on CPU %u: %s.", source->text,
		    cpu, strerror(-r));
}

static int leader_failure(const struct pp_source *source, unsigned cpu, int r, struct failure *f)
{
	const char *text = source->text;

	if (source->aux_action && (r == -EINVAL || r == -EOPNOTSUPP))
		return cannot_pause(source, f);
	switch (-r) {
	case EBUSY:
		return fail(
			f, EBUSY,
			"The PMU of '%s' is in use on CPU %u, and traces for one at a time; end "
			"the other tool, or delete the event that has it (`perfctl list`; a pause "
			"is not enough), or share an equal one (--share).",
			text, cpu);
	case ENOENT: /* SPE says so of a CPU that has none, and the kernel if the driver has gone */
		return fail(f, EOPNOTSUPP,
			    "The PMU of '%s' does not trace on CPU %u, or its driver has gone; "
			    "name CPUs that have it (-C), or load the driver.",
			    text, cpu);
	case EACCES:
	case EPERM:
		return fail(f, -r,
			    "The kernel does not allow '%s' to be traced (%s); see "
			    "kernel.perf_event_paranoid and kernel lockdown.",
			    text, strerror(-r));
	case EMFILE:
		return fail(f, EMFILE,
			    "The engine has too many descriptors open to trace '%s'; raise "
			    "LimitNOFILE= of the engine.",
			    text);
	default:
		return fail(f, -r,
			    "The PMU of '%s' does not trace it on CPU %u (%s); check its terms, "
			    "which /sys/bus/event_source/devices lists.",
			    text, cpu, strerror(-r));
	}
}

/* The CPUs that are online, and where the PMU is. */
static int find_cpus(const struct pp_event *event, const struct pp_parsed *parsed,
		     struct pp_cpumask *ret, struct failure *f)
{
	int r = pp_cpus_read("online", ret);

	if (r < 0)
		return fail(f, -r, "Cannot read which CPUs are online: %s.", strerror(-r));
	r = links_parsed_cpus(parsed, ret);
	if (r < 0)
		return fail(f, r == -ENOENT ? ENODEV : -r,
			    "Cannot read on which CPUs the PMU of '%s' traces: %s.",
			    event->spec.event, strerror(-r));
	return 0;
}

/* ── the group ──────────────────────────────────────────────────────────────────────────── */

/* What is opened on each CPU: the event that traces, and those beside it. */
struct group {
	const struct pp_parsed *parsed;
	struct perf_event_attr attr[PP_TERMS_MAX];
	unsigned failed_on;
	int failed; /* the first error; its source: */
	const struct pp_source *failed_source;
};

static int tracepoint_failure(const struct pp_source *source, int r, struct failure *f)
{
	return fail(f, -r, "Cannot read tracepoint '%s:%s' from tracefs: %s.", source->system,
		    source->name, strerror(-r));
}

static int group_init(struct group *g, const struct pp_spec *spec, const struct pp_parsed *parsed,
		      struct failure *f)
{
	*g = (struct group){ .parsed = parsed };
	for (uint32_t i = 0; i < parsed->n_sources; i++) {
		const struct pp_source *source = &parsed->sources[i];
		struct tracepoint tp = {};
		int r = 0;

		if (source->kind == PP_SOURCE_TRACEPOINT)
			r = tracepoint_read(source->system, source->name, &tp);
		if (r < 0)
			return tracepoint_failure(source, r, f);
		recorder_aux_attr(spec, source, &tp, &g->attr[i]);
		tracepoint_done(&tp);
	}
	return 0;
}

/* All of them or none. -ENODEV: the CPU is offline. */
static int group_open(struct group *g, unsigned cpu, struct pp_fds *fds)
{
	uint32_t first = fds->n;

	for (uint32_t i = 0; i < g->parsed->n_sources; i++) {
		const struct perf_place at = {
			.cpu = (int)cpu,
			.tid = -1,
			.cgroup = -EBADF,
			.group = i ? fds->fd[first] : 0,
		};
		int fd = perf_open_at(&g->attr[i], &at);

		if (fd >= 0) {
			fds->fd[fds->n++] = fd;
			continue;
		}
		while (fds->n > first)
			close_fd(fds->fd[--fds->n]);
		if (fd != -ENODEV && !g->failed) {
			g->failed = fd;
			g->failed_on = cpu;
			g->failed_source = &g->parsed->sources[i];
		}
		return fd;
	}
	return 0;
}

static int group_failure(const struct group *g, struct failure *f)
{
	return g->failed_source->kind == PP_SOURCE_AUX
		       ? leader_failure(g->failed_source, g->failed_on, g->failed, f)
		       : member_failure(g->failed_source, g->failed_on, g->failed, f);
}

int auxtrace_open(uint64_t id, uint32_t n, const struct pp_cpumask *cpus,
		  struct pp_cpumask *ret_cpus, struct pp_fds *ret_fds, struct failure *f)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	struct pp_cpumask there, opened = {};
	struct pp_event event;
	struct group group;
	int r = read_event(id, &event, &parsed, f);

	if (r < 0)
		return r;
	if (parsed->n_sources != n)
		return fail(f, EINVAL, "%s/%s has %u events, not %u.", event.spec.ns,
			    event.spec.name, parsed->n_sources, n);
	r = find_cpus(&event, parsed, &there, f);
	if (r >= 0)
		r = group_init(&group, &event.spec, parsed, f);
	if (r < 0)
		return r;
	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		if (!pp_cpumask_test(&there, cpu))
			continue;
		if (group_open(&group, cpu, &fds) == 0)
			pp_cpumask_set(&opened, cpu);
	}
	/* One CPU that another tool has keeps no other from tracing: the next order is for it alone. */
	if (group.failed && fds.n == 0)
		return group_failure(&group, f);
	*ret_cpus = opened;
	*ret_fds = fds;
	fds.n = 0;
	return 0;
}
