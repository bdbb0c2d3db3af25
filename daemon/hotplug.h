/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record that CPU hotplug leaves: an array map of the instance with one of these for each
 * possible CPU, pinned as +cpus (readable to the broker's user). A program of ours on the
 * tracepoint cpuhp:cpuhp_enter writes it, whose link is pinned as +cpus-link. It counts while no
 * daemon runs, so even the shortest time offline is noticed.
 *
 * sysfs says which CPUs are online; this map says since when the others are offline, and how often
 * each was.
 */
#pragma once

#include <linux/types.h>

#define PP_CPU_STATES "+cpus"
#define PP_CPU_STATES_LINK "+cpus-link"

struct pp_cpu_state {
	__u64 generation; /* how often it went offline: each time its perf events died */
	/* CLOCK_MONOTONIC, ns: when it went offline, or when an offline CPU was first looked at; 0:
	 * it is online, or coming online */
	__u64 away;
};
