// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens the perf events of an event with AUX areas. Must not know who maps them. See auxtrace.h. */
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
	if (event->spec.flags & PP_EVENT_AUX && (*parsed)->n_sources == 1)
		return 0;
	return fail(f, EINVAL, "%s/%s has no AUX areas.", event->spec.ns, event->spec.name);
}

static int open_failure(const struct pp_event *event, unsigned cpu, int r, struct failure *f)
{
	const char *text = event->spec.event;

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

int auxtrace_open(uint64_t id, const struct pp_cpumask *cpus, struct pp_cpumask *ret_cpus,
		  struct pp_fds *ret_fds, struct failure *f)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	struct pp_cpumask there, opened = {};
	struct perf_event_attr attr;
	struct pp_event event;
	unsigned failed_on = 0;
	int r = read_event(id, &event, &parsed, f), failed = 0;

	if (r < 0)
		return r;
	r = find_cpus(&event, parsed, &there, f);
	if (r < 0)
		return r;
	recorder_aux_attr(&event.spec, &parsed->sources[0], &attr);
	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		int fd = pp_cpumask_test(&there, cpu) ? perf_open(&attr, cpu) : -ENODEV;

		if (fd == -ENODEV)
			continue; /* not there, or went offline meanwhile */
		if (fd < 0 && !failed) {
			failed = fd;
			failed_on = cpu;
		}
		if (fd < 0)
			continue;
		fds.fd[fds.n++] = fd;
		pp_cpumask_set(&opened, cpu);
	}
	/* One CPU that another tool has keeps no other from tracing: the next order is for it alone. */
	if (failed && fds.n == 0)
		return open_failure(&event, failed_on, failed, f);
	*ret_cpus = opened;
	*ret_fds = fds;
	fds.n = 0;
	return 0;
}
