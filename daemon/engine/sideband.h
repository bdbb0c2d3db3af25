/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Perf events that report processes, and iterators over those that exist: the keeper may not make
 * them itself. Nothing is pinned or remembered: the descriptors hold them.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "proto/packet.h"

/*
 * Returns an event for each of these CPUs that is online (*ret_cpus), in order. With
 * PP_SIDEBAND_TASKS in `what` follow the iterators of tasks and of their mappings, which can be
 * read once, and that of BPF programs, which `reader` can open again and again: an O_PATH
 * descriptor (proto/keep.h). The descriptors are the caller's. 0; -errno, with a message in *f.
 */
int sideband_open(const struct pp_cpumask *cpus, uint32_t what, uid_t reader,
		  struct pp_cpumask *ret_cpus, struct pp_fds *ret_fds, struct failure *f);
