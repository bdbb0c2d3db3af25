// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns a single event's memory and its state. Must not know registry, orders or peers. */
#include "daemon/broker/state/event.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct event *event_new(const struct pp_spec *spec, struct namespace *ns)
{
	struct event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->state = PP_EVENT_CREATING;
	e->ns = ns;
	e->truth.spec = *spec;
	return e;
}

void event_free(struct event *e)
{
	if (!e)
		return;
	if (e->pairs)
		munmap((void *)e->pairs, PP_PAIRS_SIZE);
	free(e->aim);
	free(e->to_tell);
	free(e);
}

int event_keep_firing(struct event *e, const struct pp_fired *fired)
{
	if (!e->to_tell)
		e->to_tell = malloc(sizeof(*e->to_tell));
	if (!e->to_tell)
		return -ENOMEM;
	*e->to_tell = *fired;
	return 0;
}

static bool is_at_rest(enum pp_event_state state)
{
	return state == PP_EVENT_RUNNING || state == PP_EVENT_PAUSED;
}

static bool may_follow(enum pp_event_state from, enum pp_event_state to)
{
	switch (from) {
	case PP_EVENT_CREATING:
	case PP_EVENT_CHANGING:
	case PP_EVENT_DELETING:
		return is_at_rest(to);
	case PP_EVENT_RUNNING:
	case PP_EVENT_PAUSED:
		return is_at_rest(to) || to == PP_EVENT_CHANGING || to == PP_EVENT_DELETING;
	case PP_EVENT_FROZEN: /* only shown */
		break;
	}
	return false;
}

void event_set_state(struct event *e, enum pp_event_state to)
{
	assert(may_follow(e->state, to));
	e->state = to;
}

void event_rest(struct event *e)
{
	event_set_state(e, e->truth.paused ? PP_EVENT_PAUSED : PP_EVENT_RUNNING);
}

bool event_lacks(const struct event *e, const struct pp_cpumask *cpus, struct pp_cpumask *ret)
{
	const struct pp_spec *spec = &e->truth.spec;
	bool any = false;

	for (size_t i = 0; i < PP_CPUS_MAX / 64; i++) {
		uint64_t wanted = spec->flags & PP_EVENT_ALL_CPUS ? UINT64_MAX : spec->cpus.bits[i];

		ret->bits[i] = cpus->bits[i] & wanted & ~e->truth.rings.bits[i];
		any |= ret->bits[i] != 0;
	}
	return any;
}

uint32_t event_find_changes(const struct pp_spec *a, const struct pp_spec *b)
{
	return (strcmp(a->filter, b->filter) != 0 ? PP_CHANGE_FILTER : 0) |
	       (a->data_size != b->data_size ? PP_CHANGE_BUFFER : 0) |
	       (a->max_rate != b->max_rate ? PP_CHANGE_MAX_RATE : 0) |
	       ((a->flags ^ b->flags) & PP_EVENT_CHECKPOINT ? PP_CHANGE_CHECKPOINT : 0) |
	       (a->period != b->period || (a->flags ^ b->flags) & PP_EVENT_FREQ ? PP_CHANGE_PERIOD
										: 0);
}

void event_take_changes(struct pp_spec *into, const struct pp_spec *from, uint32_t what)
{
	if (what & PP_CHANGE_FILTER)
		memcpy(into->filter, from->filter, sizeof(into->filter));
	if (what & PP_CHANGE_BUFFER)
		into->data_size = from->data_size;
	if (what & PP_CHANGE_MAX_RATE)
		into->max_rate = from->max_rate;
	if (what & PP_CHANGE_CHECKPOINT)
		into->flags =
			(into->flags & ~PP_EVENT_CHECKPOINT) | (from->flags & PP_EVENT_CHECKPOINT);
	if (what & PP_CHANGE_PERIOD) {
		into->period = from->period;
		into->samples = from->samples;
		into->flags = (into->flags & ~PP_EVENT_FREQ) | (from->flags & PP_EVENT_FREQ);
	}
}

bool event_is_equal(const struct pp_spec *a, const struct pp_spec *b)
{
	return event_find_changes(a, b) == 0 && strcmp(a->event, b->event) == 0 &&
	       (a->flags & ~PP_EVENT_CONFIGURED) == (b->flags & ~PP_EVENT_CONFIGURED) &&
	       a->max_stack == b->max_stack && a->stack_user == b->stack_user &&
	       memcmp(&a->cpus, &b->cpus, sizeof(a->cpus)) == 0;
}
