/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which events are targets of which triggers, and what these need of them. Shared by targets.c and
 * triggers.c only; triggers.h has what others ask. */
#pragma once

#include "daemon/broker/triggers/triggers.h"

static inline bool targets_is_trigger(const struct event *e)
{
	return e->truth.spec.flags & PP_EVENT_TRIGGER;
}

/* Lists them in t->first, for the functions below. Of so many events only a few are triggers. */
void targets_list_triggers(struct triggers *t);

/* PP_ARM_* bits: what its triggers need of it; 0: it has none. */
uint32_t targets_needs(const struct triggers *t, struct event *e);

/* The event has another tape than before, or none: its triggers are to be aimed. Lists them itself. */
void targets_aim_anew(struct triggers *t, const struct event *e);
