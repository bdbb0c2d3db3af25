// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares triggers and events. See targets.h. */
#include "daemon/broker/triggers/targets.h"

#include <string.h>

#include "daemon/filter.h"
#include "proto/macro.h"

/* Whether the name is in a list of names and globs with commas. */
static bool is_listed(const char *list, const char *name)
{
	char item[PP_TARGETS_TEXT];

	while (*list) {
		size_t n = strcspn(list, ",");

		memcpy(item, list, n);
		item[n] = 0;
		if (pp_glob_match(item, name))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* The second set of rings is charged to the event's creator, so nobody but root spends another's
 * memory. Second names have no rings of their own, and what fires goes on recording. There is no
 * second AUX area; tracing can only be stopped. */
bool triggers_match(const struct event *trigger, const struct event *e)
{
	uint32_t creator = trigger->truth.spec.creator;

	if (e->truth.spec.flags & PP_EVENT_AUX && trigger->trigger.action != PP_ACTION_PAUSE)
		return false;

	return targets_is_trigger(trigger) && !targets_is_trigger(e) && trigger->ns == e->ns &&
	       !e->truth.shares && (creator == 0 || creator == e->truth.spec.creator) &&
	       is_listed(trigger->trigger.targets, e->truth.spec.name);
}

void targets_list_triggers(struct triggers *t)
{
	const struct registry *r = &t->lifecycle->registry;
	struct event **last = &t->first;

	for (size_t i = 0; i < r->n_settled; i++) {
		struct event *e = r->by_id[i];

		if (!targets_is_trigger(e))
			continue;
		*last = e;
		last = &e->next_trigger;
	}
	*last = NULL;
}

static bool is_of_kind(const struct pp_trigger_spec *spec, enum event_aimed_by kind)
{
	switch (kind) {
	case AIMED_BY_PAUSE:
		return spec->action == PP_ACTION_PAUSE;
	case AIMED_BY_WINDOW:
		return spec->after;
	default:
		return spec->action != PP_ACTION_PAUSE;
	}
}

/* Whether a trigger of this kind has it as a target. Each step looks at all events, and globs can be
 * slow: a trigger and an event are compared once as long as both are there. What decides never changes,
 * and later triggers have higher ids. One that is being deleted may stay after all. */
static bool is_aimed_by(const struct triggers *t, struct event *e, enum event_aimed_by kind)
{
	uint64_t *found = &e->aimed_by[kind].found, *searched = &e->aimed_by[kind].searched;

	if (*found && registry_by_id(&t->lifecycle->registry, *found))
		return true;
	*found = 0;
	for (const struct event *i = t->first; i && !*found; i = i->next_trigger) {
		if (i->truth.id < *searched)
			continue;
		*searched = i->truth.id + 1;
		if (is_of_kind(&i->trigger, kind) && triggers_match(i, e))
			*found = i->truth.id;
	}
	return *found;
}

uint32_t targets_needs(const struct triggers *t, struct event *e)
{
	return (is_aimed_by(t, e, AIMED_BY_FREEZE) ? PP_ARM_SWAP : 0) |
	       (is_aimed_by(t, e, AIMED_BY_PAUSE) ? PP_ARM_STOPS : 0) |
	       (is_aimed_by(t, e, AIMED_BY_WINDOW) ? PP_ARM_WINDOWS : 0);
}

/* Whether the trigger would freeze or pause it now, as it is to. */
static bool is_armed_for(const struct event *trigger, const struct event *e)
{
	uint32_t needs = PP_NOW_ARMED;

	if (is_of_kind(&trigger->trigger, AIMED_BY_PAUSE))
		needs |= PP_NOW_STOPS;
	if (is_of_kind(&trigger->trigger, AIMED_BY_WINDOW))
		needs |= PP_NOW_WINDOWS;
	return (e->truth.now & needs) == needs;
}

void triggers_count(const struct lifecycle *l, const struct event *trigger, unsigned *ret,
		    unsigned *ret_armed)
{
	const struct registry *r = &l->registry;

	*ret = *ret_armed = 0;
	for (size_t i = 0; i < r->n_settled; i++)
		if (triggers_match(trigger, r->by_id[i])) {
			++*ret;
			*ret_armed += !trigger->aim_due && is_armed_for(trigger, r->by_id[i]);
		}
	*ret_armed = MIN(*ret_armed, (unsigned)PP_TARGETS_MAX);
}

void targets_aim_anew(struct triggers *t, const struct event *e)
{
	targets_list_triggers(t);
	for (struct event *i = t->first; i; i = i->next_trigger)
		i->aim_due |= triggers_match(i, e);
}
