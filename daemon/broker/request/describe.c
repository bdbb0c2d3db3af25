// SPDX-License-Identifier: LGPL-2.1-or-later
/* Combines the registry's and the tree's facts about an event. Makes no decisions. */
#include "daemon/broker/request/describe.h"

#include <string.h>

#include "daemon/broker/hotplug/missing-rings.h"
#include "daemon/broker/state/namespace.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

void event_count(const char *registry, const struct event *e, int *totals, struct tree_stat *ret)
{
	const struct pp_spec *spec = &e->truth.spec;
	int r;

	*ret = (struct tree_stat){ 0 };
	/* A tape has no stat file; its rings tell what they hold. */
	if (e->is_tape) {
		ret->missed_unknown = PP_MISSED_UNKNOWN;
		return;
	}
	r = tree_count(registry, e->truth.origin, e->truth.set, totals, ret);
	/* Without the stat file nothing is known, which differs from nothing missed. */
	if (r < 0)
		ret->missed_unknown = PP_MISSED_UNKNOWN;
	if (r < 0 && e->state != PP_EVENT_CREATING && e->state != PP_EVENT_DELETING)
		log_debug("Cannot read the counts of %s/%s: %s.", spec->ns, spec->name,
			  strerror(-r));
	if (e->truth.missed_unknown == PP_MISSED_UNKNOWN)
		ret->missed_unknown = PP_MISSED_UNKNOWN;
}

/* A list too long for its field is cut; OPEN names every CPU. */
static void format_cpus(const struct event *e, const struct pp_cpumask *cpus,
			char field[PP_CPUS_SIZE])
{
	if (pp_format_cpus(cpus, field, PP_CPUS_SIZE) < 0)
		log_debug("The CPUs of %s/%s do not fit into one list.", e->truth.spec.ns,
			  e->truth.spec.name);
}

void event_describe(const struct event *e, const struct tree_stat *stat, struct pp_msg_event *ret)
{
	const struct pp_event *t = &e->truth;

	*ret = (struct pp_msg_event){
		.id = t->id,
		.shares = t->shares,
		.recorder = t->recorder,
		.state = e->state,
		.sources = t->n_sources,
		.set = t->set,
		.data_size = t->spec.data_size,
		.memory = e->charged,
		.sample_type = t->sample_type,
		.period = t->spec.period,
		.max_rate = t->spec.max_rate,
		.max_stack = t->spec.max_stack,
		.stack_user = t->spec.stack_user,
		.flags = t->spec.flags | (pp_is_paused_by_trigger(t) ? PP_EVENT_STOPPED : 0),
		.owner = e->ns->owner,
		.group = e->ns->group,
		.mode = e->ns->mode,
		.creator = t->spec.creator,
		.created = t->created,
		.missed_unknown = stat ? stat->missed_unknown : PP_MISSED_UNKNOWN,
	};
	if (stat) {
		ret->records = stat->records;
		ret->bytes = stat->bytes;
		ret->missed = stat->missed;
		ret->limited = stat->limited;
	}
	memcpy(ret->ns, t->spec.ns, sizeof(ret->ns));
	memcpy(ret->name, t->spec.name, sizeof(ret->name));
	memcpy(ret->event, t->spec.event, sizeof(ret->event));
	memcpy(ret->filter, t->spec.filter, sizeof(ret->filter));
	ret->target = e->target;
	if (e->target.kind && t->now & PP_NOW_ENDED)
		ret->target.flags |= PP_TARGET_ENDED;
	format_cpus(e, &t->rings, ret->cpus);
}

static bool lacks_areas(const struct lifecycle *l, const struct event *e,
			const struct pp_cpumask *online, struct pp_cpumask *ret, int *ret_error)
{
	const struct event *owner =
		e->truth.shares ? registry_by_id(&l->registry, e->truth.shares) : e;
	uint64_t some = 0;

	if (!owner || !owner->aux_error)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ret->bits); i++)
		some |= ret->bits[i] = owner->aux_lacks.bits[i] & online->bits[i];
	*ret_error = owner->aux_error;
	return some;
}

/* Frozen twice: until the tape of the firing before is saved, that of this one cannot become a tape. (Without a second
 * set of rings the event is frozen once, and is itself the tape.) */
static bool waits_for_tape(const struct lifecycle *l, const struct event *e)
{
	const struct pp_event *t = &e->truth;

	return e->state == PP_EVENT_RUNNING && t->now & PP_NOW_TURNED && t->now & PP_NOW_SWAP &&
	       !(t->now & PP_NOW_STOPPED) && tapes_of(&l->tapes, t->shares ?: t->id);
}

void event_describe_cpus(const struct lifecycle *l, const struct event *e,
			 const struct pp_cpumask *online, struct pp_msg_event *ret)
{
	struct pp_cpumask cpus;
	int r = 0;

	if (waits_for_tape(l, e))
		ret->state = PP_EVENT_FROZEN;
	for (size_t i = 0; i < ARRAY_SIZE(cpus.bits); i++)
		cpus.bits[i] = e->truth.rings.bits[i] & ~online->bits[i];
	format_cpus(e, &cpus, ret->away);
	if (!missing_rings_of(l, e, online, &cpus, &r) && !lacks_areas(l, e, online, &cpus, &r))
		return;
	format_cpus(e, &cpus, ret->lacking);
	ret->lacking_error = r;
}
