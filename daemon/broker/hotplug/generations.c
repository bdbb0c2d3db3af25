// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the counts of the last look. See generations.h. */
#include "daemon/broker/hotplug/generations.h"

#include "daemon/broker/handout/tree.h"
#include "daemon/hotplug.h"
#include "proto/macro.h"

void generations_look(struct generations *g, const char *registry, const struct pp_cpumask *online,
		      struct pp_cpumask *ret)
{
	_cleanup_close_ int fd = tree_cpus_open(registry);
	struct pp_cpu_state state;

	*ret = (struct pp_cpumask){ 0 };
	if (fd < 0)
		return;
	PP_CPUMASK_FOREACH(cpu, online)
	{
		if (tree_cpus_read(fd, cpu, &state) < 0 || state.away ||
		    state.generation == g->of[cpu])
			continue;
		g->of[cpu] = state.generation;
		pp_cpumask_set(ret, cpu);
	}
}
