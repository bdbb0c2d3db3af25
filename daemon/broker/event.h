/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event, as the broker knows it: what was ordered, what the engine said of it, and where
 * it stands in its life. Knows nothing of who asks for it.
 */
#ifndef PP_BROKER_EVENT_H
#define PP_BROKER_EVENT_H

#include "daemon/order.h"

struct namespace;

struct event {
	enum pp_event_state state;
	struct namespace *ns;
	struct pp_event truth; /* from the engine; while creating only its spec, and id 0 */
	uint64_t seen;	       /* the reconciliation that found it last */
};

/* A new one, creating, of this spec. NULL: no memory. */
struct event *event_new(const struct pp_spec *spec, struct namespace *ns);
void event_free(struct event *e);

/*
 * The one place where an event's state changes:
 *   creating → running → deleting → running (the deletion failed)
 * Anything else is our own bug.
 */
void event_set_state(struct event *e, enum pp_event_state to);

#endif
