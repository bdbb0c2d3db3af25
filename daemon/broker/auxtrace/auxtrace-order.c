// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the registry with what the keeper holds, and fetches what is missing from the engine.
 * Must not know the keeper. */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/auxtrace/auxtrace-internal.h"
#include "daemon/broker/handout/tree.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* ── what is wanted ─────────────────────────────────────────────────────────────────────── */

/* Second names have no areas of their own. An event that is being deleted has: a second name may inherit them. */
static bool owns_areas(const struct event *e)
{
	return e->truth.spec.flags & PP_EVENT_AUX && !e->truth.shares &&
	       e->state != PP_EVENT_CREATING;
}

static bool wants_areas(const struct event *e)
{
	return owns_areas(e) && e->state != PP_EVENT_DELETING;
}

struct event *auxtrace_owner(const struct auxtrace *a, uint64_t origin)
{
	const struct registry *r = &a->lifecycle->registry;

	for (size_t i = 0; i < r->n_settled; i++)
		if (owns_areas(r->by_id[i]) && r->by_id[i]->truth.origin == origin)
			return r->by_id[i];
	return NULL;
}

/* A perf event dies with its CPU: an area of another generation is missing. */
static bool holds(const struct auxtrace *a, uint64_t origin, unsigned cpu, uint64_t generation)
{
	const struct held_area *held = aux_held_find(a, origin, cpu);

	return held && !held->dead && held->is.generation == generation;
}

/* Whether perf events on it live, and the generation of those that are opened now; -errno. Without an account the
 * broker is told of CPUs that go (auxtrace_went()). */
static int is_there(int account, unsigned cpu, uint64_t *ret)
{
	struct pp_cpu_state state = {};
	int r = account >= 0 ? tree_cpus_read(account, cpu, &state) : 0;

	*ret = state.generation;
	return r < 0 ? r : !state.away;
}

/* The keeper does nothing else while it maps them: no more than it also copies in one go. */
static uint32_t page_max(const struct event *e)
{
	const struct pp_spec *spec = &e->truth.spec;
	uint64_t n = PP_AUX_SIZE_MAX / (spec->data_size + pp_spec_aux_samples(spec));

	return (uint32_t)MIN(MAX(n, 1ULL), (uint64_t)PP_SIDEBAND_CPUS / e->truth.n_sources);
}

/* Fills the page with the next CPUs on which the event lacks its area, but for those: NULL: none. Whether there are
 * any; -errno: nobody knows just now. */
static int find_missing(const struct auxtrace *a, const struct event *e,
			const struct pp_cpumask *refused, struct pp_cpumask *cpus,
			struct pp_keep_cpu *page, uint32_t *n)
{
	_cleanup_close_ int account = tree_cpus_open(a->registry);
	uint32_t max = page_max(e);

	*cpus = (struct pp_cpumask){};
	*n = 0;
	if (account < 0 && account != -ENOENT)
		return account;
	PP_CPUMASK_FOREACH(cpu, &e->truth.rings)
	{
		uint64_t generation;
		int r;

		if (!pp_cpumask_test(a->online, cpu) || *n == max ||
		    (refused && pp_cpumask_test(refused, cpu)))
			continue;
		r = is_there(account, cpu, &generation);
		if (r < 0)
			return r;
		if (r == 0 || holds(a, e->truth.origin, cpu, generation))
			continue;
		page[(*n)++] = (struct pp_keep_cpu){ .cpu = cpu, .generation = generation };
		pp_cpumask_set(cpus, cpu);
	}
	return *n > 0;
}

bool auxtrace_is_complete(const struct auxtrace *a, const struct event *e)
{
	struct pp_keep_cpu page[PP_KEEP_CPUS];
	struct pp_cpumask cpus;
	uint32_t n;

	return find_missing(a, e, NULL, &cpus, page, &n) == 0;
}

/* ── what is missing ────────────────────────────────────────────────────────────────────── */

void auxtrace_refused(struct auxtrace *a, uint64_t id, int error, const char *sentence)
{
	struct event *e = registry_by_id(&a->lifecycle->registry, id);

	/* Its creator is told, and need not read the log. */
	if (e && e->aux_error != error && error != ENODEV && !aux_waits_for(a, id))
		log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name,
			  "%s/%s (id %" PRIu64 ") does not trace on all its CPUs; this is tried "
			  "again: %s",
			  e->truth.spec.ns, e->truth.spec.name, id, sentence);
	if (e) {
		e->aux_error = error;
		PP_CPUMASK_FOREACH(cpu, &a->asked_for)
		{
			pp_cpumask_set(&e->aux_refused, cpu);
			pp_cpumask_set(&e->aux_lacks, cpu);
		}
	}
	aux_waits_end(a, id, error, sentence);
}

/* Keeps the CPUs with a descriptor. The others are offline. */
static void keep_those(struct auxtrace *a, const struct pp_cpumask *cpus)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n_page; i++)
		if (pp_cpumask_test(cpus, a->page[i].cpu))
			a->page[n++] = a->page[i];
	a->n_page = n;
}

/* Whether CPUs went after they were asked for: which of their perf events live is unknown then. */
static bool went_meanwhile(const struct auxtrace *a)
{
	_cleanup_close_ int account = tree_cpus_open(a->registry);
	uint64_t generation;

	for (uint32_t i = 0; i < a->n_page; i++)
		if (is_there(account, a->page[i].cpu, &generation) <= 0 ||
		    generation != a->page[i].generation)
			return true;
	return false;
}

static void on_ordered(struct waiter *waiter, const struct outcome *outcome)
{
	struct auxtrace *a = (struct auxtrace *)waiter;

	a->ordering = false;
	if (outcome->error) {
		/* Without an engine the order follows when it returns; without the event, never.
		 * (perf_event_open(2) has these two errors as well: they are refusals.) */
		if (orders_is_patient(a->lifecycle->orders) && outcome->event &&
		    wants_areas(outcome->event))
			auxtrace_refused(a, a->about, outcome->error, outcome->sentence);
		return;
	}
	keep_those(a, outcome->cpus);
	if (a->ordered_on != a->connection || went_meanwhile(a)) {
		pp_fds_close(&a->fds);
		return;
	}
	if (a->n_page == 0)
		auxtrace_refused(a, a->about, ENODEV,
				 "The CPUs that it is to trace on are offline again.");
}

static bool order(struct auxtrace *a, struct event *e)
{
	int r;

	if (find_missing(a, e, &e->aux_refused, &a->asked_for, a->page, &a->n_page) <= 0)
		return false;
	a->about = e->truth.id;
	a->origin = e->truth.origin;
	a->ordered_on = a->connection;
	a->waiter = (struct waiter){ .done = on_ordered };
	a->ordering = true;
	r = lifecycle_aux(a->lifecycle, e, &a->asked_for, &a->fds, &a->waiter);
	if (r < 0)
		a->ordering = false;
	return r >= 0;
}

const struct pp_keep_area *auxtrace_stale(const struct auxtrace *a)
{
	const struct registry *r = &a->lifecycle->registry;
	struct pp_keep_cpu page[PP_KEEP_CPUS];
	const struct held_area *held;
	struct pp_cpumask cpus;
	uint32_t n;

	if (a->ordering || !orders_is_up(a->lifecycle->orders))
		return NULL;
	for (size_t i = 0; i < r->n_settled; i++) {
		const struct event *e = r->by_id[i];

		if (!wants_areas(e) || find_missing(a, e, &e->aux_refused, &cpus, page, &n) <= 0)
			continue;
		for (uint32_t k = 0; k < n; k++)
			if ((held = aux_held_find(a, e->truth.origin, page[k].cpu)))
				return &held->is;
	}
	return NULL;
}

bool auxtrace_order(struct auxtrace *a)
{
	const struct registry *r = &a->lifecycle->registry;

	if (a->ordering || !orders_is_up(a->lifecycle->orders))
		return a->ordering;
	for (size_t i = 0; i < r->n_settled; i++) {
		struct event *e = r->by_id[i];

		if (wants_areas(e) && order(a, e))
			return true;
	}
	return false;
}
