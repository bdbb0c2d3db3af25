/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPUs on which a PMU counts, from sysfs. */
#pragma once

#include "daemon/order.h"

/*
 * The CPUs on which the PMU of this type (perf_event_attr.type) counts for all others: one of each
 * package, or those of one kind. -ENOENT: sysfs does not say; -errno.
 */
int pmu_cpus(uint32_t type, struct pp_cpumask *ret);
