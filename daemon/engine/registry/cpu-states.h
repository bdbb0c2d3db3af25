/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance's record of CPUs that go offline (daemon/hotplug.h). A program in the kernel keeps
 * it, even without an engine: a CPU's counters die with it, and nothing else tells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* No generation: the CPU is offline, or going offline; for a ring: nothing was attached there. */
#define CPU_STATES_NONE UINT64_MAX

/*
 * At start: finds or makes the map and the program's link in the registry, and brings the map in
 * line with sysfs. Logs why this kernel cannot tell; the functions below work without. -errno: the
 * machine lacks something for the moment, and all counters of CPUs would count as dead.
 */
int cpu_states_open(uid_t broker);

/* The map, for programs; -EBADF: none. */
int cpu_states_fd(void);

/*
 * The generation of counters that are attached to this CPU from now on; to be read before they are
 * attached. Always 0 without a map.
 */
uint64_t cpu_states_generation(unsigned cpu);
