// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CPUS: which CPUs are offline, and since when. The kernel's own hotplug steps record the time,
 * whether a daemon runs or not; where they cannot, our own observations must do.
 */
#include <string.h>
#include <time.h>

#include "daemon/broker/request/request-internal.h"
#include "daemon/cpus.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define LAG_NSEC 1000000000ULL /* the most between the kernel's record and sysfs */

/*
 * CLOCK_MONOTONIC. states: the map, or negative. 0: unknown. A record from before the CPU was last
 * seen online is about an earlier time: nobody recorded when it came.
 */
static uint64_t away_since(const struct hotplug *h, int states, unsigned cpu)
{
	struct pp_cpu_state state = { 0 };

	if (states >= 0 && tree_cpus_read(states, cpu, &state) == 0 && state.away &&
	    state.away + LAG_NSEC >= h->away[cpu].seen)
		return state.away;
	return h->away[cpu].since;
}

/* A possible CPU that is absent is nobody's loss. One that has a ring or was seen to go counts,
 * though it may have been removed from the machine since. */
static void find_candidates(const struct service *s, struct pp_cpumask *ret)
{
	const struct registry *registry = &s->lifecycle->registry;
	int r = pp_cpus_read("present", ret);

	if (r < 0) {
		log_debug("Cannot find out which CPUs are present: %s.", strerror(-r));
		*ret = (struct pp_cpumask){ 0 };
	}
	for (unsigned cpu = 0; cpu < PP_CPUS_MAX; cpu++)
		if (s->hotplug->away[cpu].since)
			pp_cpumask_set(ret, cpu);
	for (size_t i = 0; i < registry->n_settled; i++)
		for (size_t j = 0; j < ARRAY_SIZE(ret->bits); j++)
			ret->bits[j] |= registry->by_id[i]->truth.rings.bits[j];
	for (size_t j = 0; j < ARRAY_SIZE(ret->bits); j++)
		ret->bits[j] &= ~s->hotplug->online.bits[j];
}

static void fill(const struct service *s, const struct pp_cpumask *away, uint32_t first,
		 struct pp_msg_cpus_reply *reply)
{
	_cleanup_close_ int states = tree_cpus_open(s->registry);
	uint64_t real = pp_clock_ns(CLOCK_REALTIME), monotonic = pp_clock_ns(CLOCK_MONOTONIC);

	if (states < 0)
		log_debug("The kernel's account of CPUs cannot be read: %s.", strerror(-states));
	reply->count = reply->more = 0;
	PP_CPUMASK_FOREACH(cpu, away)
	{
		uint64_t since;

		if (cpu < first)
			continue;
		if (reply->count == PP_AWAY_MAX) {
			reply->more = 1;
			break;
		}
		since = away_since(s->hotplug, states, cpu);
		reply->cpus[reply->count++] = (struct pp_msg_cpu_away){
			.cpu = cpu,
			.since = since ? real - MIN(monotonic - since, real) : 0,
		};
	}
}

void request_cpus(struct request *req, const struct pp_msg_cpus_request *request)
{
	struct service *s = req->service;
	struct pp_cpumask away;

	if (request->reserved) {
		refuse(req, EINVAL,
		       "The request has fields that this version does not know; use a "
		       "client of the same version.");
		return;
	}
	find_candidates(s, &away);
	fill(s, &away, request->first, &s->reply.cpus_reply);
	peer_reply(req->peer, req->header, &s->reply, NULL, 0);
}
