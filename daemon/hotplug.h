/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel's own steps of CPU hotplug leave behind: an array map of the instance with one
 * of these for each possible CPU, pinned as +cpus (readable to the broker's user) and written by a
 * program of ours on the tracepoint cpuhp:cpuhp_enter, whose link is pinned as +cpus-link. It
 * counts while no daemon runs, so that nobody can miss that a CPU was away, however short.
 *
 * sysfs says which CPUs are online; this says since when they are not, and how often they were not.
 */
#pragma once

#include <linux/types.h>

#define PP_CPU_STATES "+cpus"
#define PP_CPU_STATES_LINK "+cpus-link"

struct pp_cpu_state {
	__u64 generation; /* counts the times it went offline: perf events on it died each time */
	/* CLOCK_MONOTONIC, ns: when it went offline, or when it was first looked at,
	 * if it was offline then; 0: it is online, or on its way there */
	__u64 away;
};
