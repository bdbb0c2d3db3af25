/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often each CPU went offline, from the account that the kernel's own hotplug steps keep
 * (daemon/hotplug.h). It reveals a CPU that was offline between two looks at sysfs without a
 * uevent. Must not know who uses this.
 */
#pragma once

#include "daemon/order.h"

/* All zeroes: as an account that has just been opened. */
struct generations {
	uint64_t of[PP_CPUS_MAX];
};

/* Finds the CPUs of `online` that went offline and came back since the last look. None where the
 * kernel keeps no account. The next look reports a CPU that is going offline now. */
void generations_look(struct generations *g, const char *registry, const struct pp_cpumask *online,
		      struct pp_cpumask *ret);
