/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sysfs says of a PMU: on which CPUs it counts. */
#pragma once

#include "daemon/order.h"

/*
 * The CPUs on which the PMU of this type (perf_event_attr.type) counts for all that it counts:
 * one of each package, or those of one kind. -ENOENT: it says nothing of it; -errno.
 */
int pmu_cpus(uint32_t type, struct pp_cpumask *ret);
