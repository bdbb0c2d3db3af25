/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often each CPU went offline, by the account that the kernel's own steps keep
 * (daemon/hotplug.h): it tells of a CPU that was away between two looks at sysfs, where no notice
 * did. Must not know who wants to know.
 */
#pragma once

#include "daemon/order.h"

/* All zeroes: as in an account that has just been opened. */
struct generations {
	uint64_t of[PP_CPUS_MAX];
};

/* Which of `online` have been away since the last look, and are back. None where the kernel keeps
 * no account. A CPU that is on its way out by now is one of the next look's. */
void generations_look(struct generations *g, const char *registry, const struct pp_cpumask *online,
		      struct pp_cpumask *ret);
