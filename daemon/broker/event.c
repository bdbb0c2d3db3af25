// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns a single event's memory and its state. Must not know registry, orders or peers. */
#include "daemon/broker/event.h"

#include <assert.h>
#include <stdlib.h>

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
	free(e);
}

static bool may_follow(enum pp_event_state from, enum pp_event_state to)
{
	switch (from) {
	case PP_EVENT_CREATING:
		return to == PP_EVENT_RUNNING;
	case PP_EVENT_RUNNING:
		return to == PP_EVENT_DELETING;
	case PP_EVENT_DELETING:
		return to == PP_EVENT_RUNNING;
	}
	return false;
}

void event_set_state(struct event *e, enum pp_event_state to)
{
	assert(may_follow(e->state, to));
	e->state = to;
}
