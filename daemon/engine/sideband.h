/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the keeper needs and may not make itself: perf events that tell of processes, and iterators
 * over those that are there. Nothing of it is pinned or remembered: it lives by its descriptors.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "proto/packet.h"

/*
 * An event for each of these CPUs that is online (*ret_cpus), in their order, then, with
 * PP_SIDEBAND_TASKS in `what`, the iterators of tasks and of their mappings, which can be read
 * once, and one of BPF programs, which `reader` can open again and again: an O_PATH descriptor
 * (proto/keep.h). The descriptors are the caller's. 0; -errno, with the sentence in *f.
 */
int sideband_open(const struct pp_cpumask *cpus, uint32_t what, uid_t reader,
		  struct pp_cpumask *ret_cpus, struct pp_fds *ret_fds, struct failure *f);
