// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds where an event does not record. See missing.h. */
#include "daemon/engine/event/missing.h"

#include "daemon/cpus.h"
#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/sources/links.h"
#include "proto/macro.h"

/* Counters of ours, of CPUs: adopted ones are opened by nobody again, and tasks take theirs along. */
static bool has_counters(const struct pp_event *event, const struct pp_parsed *parsed,
			 const struct pp_msg_target *target)
{
	if (event->spec.flags & PP_EVENT_ADOPTED || target_is_task(target))
		return false;
	for (uint32_t i = 0; i < parsed->n_sources; i++)
		if (pp_source_counts(&parsed->sources[i]))
			return true;
	return false;
}

static int find_wanted(const struct pp_event *event, const struct pp_parsed *parsed,
		       struct pp_cpumask *ret)
{
	int r = pp_cpus_read("online", ret);

	if (r < 0)
		return r;
	if (!(event->spec.flags & PP_EVENT_ALL_CPUS))
		for (size_t i = 0; i < ARRAY_SIZE(ret->bits); i++)
			ret->bits[i] &= event->spec.cpus.bits[i];
	return links_parsed_cpus(parsed, ret);
}

/* A CPU that is going offline is not dead: it will come online again, or not. */
static bool is_dead(const struct meta_map *ring, const struct pp_cpumask *come)
{
	uint64_t now = cpu_states_generation(ring->cpu);

	if (now == CPU_STATES_NONE)
		return false;
	if (cpu_states_fd() < 0 && come && pp_cpumask_test(come, ring->cpu))
		return true;
	return ring->generation != now;
}

int missing_find(const struct pp_event *event, const struct pp_parsed *parsed,
		 const struct pp_msg_target *target, const struct meta_map *maps, size_t n,
		 const struct pp_cpumask *come, struct missing *ret)
{
	struct pp_cpumask wanted;
	int r = find_wanted(event, parsed, &wanted);

	*ret = (struct missing){};
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(wanted.bits); i++)
		ret->rings.bits[i] = wanted.bits[i] & ~event->rings.bits[i];
	for (size_t i = 0; i < n && has_counters(event, parsed, target); i++)
		if (pp_cpumask_test(&wanted, maps[i].cpu) && is_dead(&maps[i], come))
			pp_cpumask_set(&ret->counters, maps[i].cpu);
	return 0;
}

bool missing_nothing(const struct missing *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->counters.bits); i++)
		if (s->rings.bits[i] || s->counters.bits[i])
			return false;
	return true;
}
