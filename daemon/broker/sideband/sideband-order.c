// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the list of parts that the keeper is missing, and fetches them from the engine. Must not
 * know the keeper. */
#include "daemon/broker/handout/tree.h"
#include "daemon/broker/sideband/sideband-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* The perf event of a CPU dies with it: an event of another generation is missing. */
static void look(struct sideband *s)
{
	_cleanup_close_ int account = tree_cpus_open(s->registry);

	s->look = false;
	s->missing = (struct pp_cpumask){ 0 };
	PP_CPUMASK_FOREACH(cpu, s->online)
	{
		if (s->held[cpu] != tree_cpus_generation(account, cpu) + 1)
			pp_cpumask_set(&s->missing, cpu);
	}
}

/* The next page of CPUs, with their present generations. A CPU that goes before its event is opened
 * then has an old generation, and is ordered again. */
static void fill_page(struct sideband *s, struct pp_cpumask *cpus)
{
	_cleanup_close_ int account = tree_cpus_open(s->registry);

	s->n_page = 0;
	PP_CPUMASK_FOREACH(cpu, &s->missing)
	{
		if (s->n_page == PP_SIDEBAND_CPUS)
			break;
		s->page[s->n_page++] = (struct pp_keep_cpu){
			.cpu = cpu,
			.generation = tree_cpus_generation(account, cpu),
		};
		pp_cpumask_set(cpus, cpu);
		pp_cpumask_clear(&s->missing, cpu);
	}
}

/* Keeps the CPUs with a descriptor. The others are offline; the next hotplug event triggers a look
 * at them. */
static void keep_those(struct sideband *s, const struct pp_cpumask *cpus)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_page; i++)
		if (pp_cpumask_test(cpus, s->page[i].cpu))
			s->page[n++] = s->page[i];
	s->n_page = n;
}

static void on_ordered(struct waiter *waiter, const struct outcome *outcome)
{
	struct sideband *s = (struct sideband *)waiter;

	s->ordering = false;
	if (outcome->error) {
		/* Without an engine the order follows when it returns. */
		s->refused = outcome->error != EAGAIN;
		s->look = true;
		if (s->refused)
			log_warning("Names and mappings of processes cannot be recorded; retrying "
				    "later: %s",
				    outcome->sentence);
		return;
	}
	if (s->ordered_on != s->connection || !sideband_is_wanted(s)) {
		pp_fds_close(&s->fds);
		s->look = true;
	} else {
		keep_those(s, outcome->cpus);
	}
}

static void submit(struct sideband *s, const struct pp_cpumask *cpus, uint32_t what)
{
	s->what = what;
	s->ordered_on = s->connection;
	s->waiter = (struct waiter){ .done = on_ordered };
	s->ordering = true;
	if (lifecycle_sideband(s->lifecycle, cpus, what, &s->fds, &s->waiter) < 0) {
		s->ordering = false;
		s->refused = true;
	}
}

static bool is_any(const struct pp_cpumask *cpus)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpus->bits); i++)
		if (cpus->bits[i])
			return true;
	return false;
}

void sideband_order(struct sideband *s)
{
	struct pp_cpumask cpus = { 0 };

	if (s->ordering || s->refused || !orders_is_up(s->lifecycle->orders))
		return;
	if (s->look)
		look(s);
	if (is_any(&s->missing)) {
		fill_page(s, &cpus);
		submit(s, &cpus, 0);
	} else if (s->status.keeping && !s->status.tasks) {
		submit(s, &cpus, PP_SIDEBAND_TASKS);
	} else {
		sideband_is_whole(s);
	}
}
