// SPDX-License-Identifier: LGPL-2.1-or-later
/* What has stayed behind CPUs. See stale.h. */
#include "daemon/engine/event/stale.h"

#include "daemon/cpus.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/sources/links.h"
#include "proto/macro.h"

static bool has_counters(const struct pp_recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->n_sources; i++)
		if (recipe->sources[i].kind == PP_SOURCE_SAMPLING)
			return true;
	return false;
}

static int find_wanted(const struct pp_event *event, const struct pp_recipe *recipe,
		       struct pp_cpumask *ret)
{
	int r = pp_cpus_read("online", ret);

	if (r < 0)
		return r;
	if (!(event->spec.flags & PP_EVENT_ALL_CPUS))
		for (size_t i = 0; i < ARRAY_SIZE(ret->bits); i++)
			ret->bits[i] &= event->spec.cpus.bits[i];
	return links_recipe_cpus(recipe, ret);
}

/* A CPU on its way out is nobody's: it will come again, or not. */
static bool is_dead(const struct meta_map *ring, const struct pp_cpumask *come)
{
	uint64_t now = cpu_states_generation(ring->cpu);

	if (now == CPU_STATES_NONE)
		return false;
	if (cpu_states_fd() < 0 && come && pp_cpumask_test(come, ring->cpu))
		return true;
	return ring->generation != now;
}

int stale_find(const struct pp_event *event, const struct pp_recipe *recipe,
	       const struct meta_map *maps, size_t n, const struct pp_cpumask *come,
	       struct stale *ret)
{
	struct pp_cpumask wanted;
	int r = find_wanted(event, recipe, &wanted);

	*ret = (struct stale){};
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(wanted.bits); i++)
		ret->ringless.bits[i] = wanted.bits[i] & ~event->rings.bits[i];
	for (size_t i = 0; i < n && has_counters(recipe); i++)
		if (pp_cpumask_test(&wanted, maps[i].cpu) && is_dead(&maps[i], come))
			pp_cpumask_set(&ret->dead, maps[i].cpu);
	return 0;
}

bool stale_is_nothing(const struct stale *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->dead.bits); i++)
		if (s->ringless.bits[i] || s->dead.bits[i])
			return false;
	return true;
}
