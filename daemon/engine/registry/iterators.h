/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Owns the engine's iterators (bpf/iterators.bpf.c), loaded with the first order that needs one and
 * kept for the engine's life. Knows nothing of their users, events and keeper.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/bpf/tree.h" /* types of the skeleton */
#include "iterators.skel.h"

/*
 * Loads all iterators that this kernel accepts; pins `totals` for the broker. *ret_tasks: 0, or the
 * -errno that kept those for the keeper from loading. -EOPNOTSUPP: this kernel has no BTF; -errno:
 * none could be loaded.
 */
int iterators_load(uid_t broker, const struct iterators_bpf **ret, int *ret_tasks);
