/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Owns the engine's iterators (bpf/iterators.bpf.c), loaded with the first order that needs one and
 * kept for the engine's life. Knows nothing of events and keeper, which they are for.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/bpf/tree.h" /* what the skeleton is made of */
#include "iterators.skel.h"

/*
 * All that this kernel takes; `totals` is pinned for the broker. *ret_tasks: 0, or why those that tell
 * of what runs are not loaded, -errno. -EOPNOTSUPP: this kernel has no BTF; -errno: there is none at all.
 */
int iterators_load(uid_t broker, const struct iterators_bpf **ret, int *ret_tasks);
