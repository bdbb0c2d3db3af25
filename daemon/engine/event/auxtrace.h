/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The perf events that trace into AUX areas, for the keeper, which maps them. */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/order.h"
#include "proto/packet.h"

/*
 * Opens the perf events of the event with this id, which has n sources, disabled, on those of the CPUs
 * that are online and have its PMU.
 * *ret_fds has, for each CPU in *ret_cpus, in the order of their numbers, a descriptor for each of the
 * event's sources, in their order; the caller closes them. -errno with a message: -ENOENT: there is no
 * such event; it has no AUX areas, or another number of sources; the PMU is in use.
 */
int auxtrace_open(uint64_t id, uint32_t n, const struct pp_cpumask *cpus,
		  struct pp_cpumask *ret_cpus, struct pp_fds *ret_fds, struct failure *f);
