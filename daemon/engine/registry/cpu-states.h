/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance's record of CPUs that go away (daemon/hotplug.h), kept by a program in the kernel
 * whether the engine runs or not: what counts on a CPU dies with it, and nothing else tells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* No generation: a CPU that is gone, or on its way; or of a ring: nothing was attached there. */
#define CPU_STATES_NONE UINT64_MAX

/*
 * At start: finds the map and the program's link in the registry, or makes them, and says in the
 * map what sysfs says. -errno: this kernel cannot tell; all that follows works without.
 */
int cpu_states_open(uid_t broker);

/* The map, for programs; -EBADF: there is none. */
int cpu_states_fd(void);

/*
 * The generation of what is attached to this CPU from now on; to be read before it is attached.
 * Always 0 where there is no map.
 */
uint64_t cpu_states_generation(unsigned cpu);
