/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of an event has stayed behind while CPUs came and went, by what is written down of it: which
 * CPUs it wants by now, and on which of them it does not record.
 */
#pragma once

#include "daemon/engine/registry/meta.h"
#include "daemon/order.h"

struct stale {
	struct pp_cpumask ringless; /* wanted, online, and without a ring */
	struct pp_cpumask dead;	    /* with a ring, but what counts there died with the CPU */
};

/*
 * n maps as meta has them. Of `dead` there is none where the kernel does not tell who went away;
 * then it is those that are in `come`, which may be NULL. 0 or -errno.
 */
int stale_find(const struct pp_event *event, const struct pp_recipe *recipe,
	       const struct meta_map *maps, size_t n, const struct pp_cpumask *come,
	       struct stale *ret);

bool stale_is_nothing(const struct stale *s);
