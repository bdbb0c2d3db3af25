// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine's limit on the memory of rings. */
#include "daemon/engine/budget.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "daemon/cpus.h"
#include "daemon/engine/event/adopt.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/registry/orphans.h"
#include "proto/macro.h"

/* A ring's memory beside its data, at most: the largest record, and a header with a format. */
#define RING_OVERHEAD (PP_SPILL_SIZE_MAX + 4ULL * PP_RING_PAGE)

static uint64_t max_bytes;
static uint64_t live; /* bytes of existing events */
static bool counted;  /* live is known */

void budget_set(uint64_t bytes)
{
	struct sysinfo info;

	if (bytes == 0 && sysinfo(&info) == 0)
		bytes = (uint64_t)info.totalram * info.mem_unit / 2;
	max_bytes = bytes;
}

static int count(const struct pp_event *event, void *userdata)
{
	*(uint64_t *)userdata += event->memory;
	return 0;
}

static int count_live(struct failure *f)
{
	uint64_t sum = 0;
	int r;

	if (counted)
		return 0;
	r = names_foreach(count, &sum);
	if (r < 0)
		return fail(f, -r, "Cannot count the memory of existing events: %s.", strerror(-r));
	live = sum;
	counted = true;
	return 0;
}

static int ring_count(const struct pp_spec *spec, uint64_t *ret)
{
	struct pp_cpumask online;
	int r = 0;

	if (spec->flags & PP_EVENT_ALL_CPUS)
		r = pp_cpus_read("online", &online);
	else
		online = spec->cpus;
	if (r < 0)
		return r;
	*ret = pp_cpumask_count(&online);
	return 0;
}

int budget_check(const struct pp_spec *spec, struct failure *f)
{
	uint64_t rings, wanted, used;
	int r;

	r = ring_count(spec, &rings);
	if (r < 0)
		return fail(f, -r, "Cannot read which CPUs are online: %s.", strerror(-r));
	r = count_live(f);
	if (r < 0)
		return r;
	wanted = rings * (pp_spec_ring_data(spec) + pp_spec_aux_memory(spec) + RING_OVERHEAD);
	used = live + event_adoptions_memory() + orphans_bytes();
	if (used < max_bytes && wanted <= max_bytes - used)
		return 0;
	return fail(f, ENOMEM,
		    "The rings of '%s/%s' may take %" PRIu64 " MiB, and of the %" PRIu64
		    " MiB that all rings together may take (the engine's --max-memory) %" PRIu64
		    " MiB are in use; delete events, or give a smaller -m.",
		    spec->ns, spec->name, (wanted + (1 << 20) - 1) >> 20, max_bytes >> 20,
		    used >> 20);
}

void budget_add(const struct pp_event *event)
{
	live += event->memory;
}

void budget_subtract(const struct pp_event *event)
{
	live -= MIN(live, event->memory);
}

void budget_recount(void)
{
	counted = false;
}
