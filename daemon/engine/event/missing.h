/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds where an event should record and does not, after CPUs went offline and online: from its
 * meta, sysfs, and the generations of CPUs.
 */
#pragma once

#include "daemon/engine/registry/meta.h"
#include "daemon/order.h"

struct missing {
	struct pp_cpumask rings;    /* wanted, online, and without a ring */
	struct pp_cpumask counters; /* with a ring, but its counter died with the CPU */
};

/*
 * target, n maps as meta has them. Where the kernel does not tell which CPUs went offline, `counters` has
 * the CPUs of `come` that have a ring; none if `come` is NULL. 0 or -errno.
 */
int missing_find(const struct pp_event *event, const struct pp_parsed *parsed,
		 const struct pp_msg_target *target, const struct meta_map *maps, size_t n,
		 const struct pp_cpumask *come, struct missing *ret);

bool missing_nothing(const struct missing *s);
