// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which firings are told, and when. See telling.h. */
#include "daemon/broker/telling.h"

#include <string.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/broker/triggers/fired.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* Firings that only notify, and were not told at once. */
#define TELL_AFTER_USEC (10 * 1000000ULL)

static void tell_rest(struct telling *t, struct event *e, uint64_t unread)
{
	if (e && e->trigger.action == PP_ACTION_NOTIFY && fired_tell_rest(e, unread))
		watchers_tell_event(t->watchers, PP_NOTICE_FIRED, e);
}

static int on_rests(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct telling *t = userdata;

	for (size_t i = 0; i < t->lifecycle->registry.n_settled; i++)
		tell_rest(t, t->lifecycle->registry.by_id[i], 0);
	return 0;
}

/* Looks wake nobody, so without this a daemon that has nothing else to do would keep the last firings to
 * itself. */
static void tell_later(struct telling *t)
{
	int enabled = SD_EVENT_OFF, r = 0;

	if (!t->rests)
		r = timer_add(t->loop, &t->rests, on_rests, t);
	if (r >= 0)
		r = sd_event_source_get_enabled(t->rests, &enabled);
	if (r >= 0 && enabled == SD_EVENT_OFF)
		r = timer_start(t->rests, TELL_AFTER_USEC);
	if (r < 0)
		log_error("Cannot wait to tell of firings, which are told later: %s.",
			  strerror(-r));
}

/* What other triggers do is told when it is done to their targets. */
void telling_fired(struct telling *t, const struct pp_fired *fired)
{
	struct event *e = registry_by_id(&t->lifecycle->registry, fired->trigger);

	if (fired->action != PP_ACTION_NOTIFY)
		return;
	if (!e)
		log_event(LOG_NOTICE, "", "",
			  "A trigger that has been removed (id %llu) has fired (number %llu).",
			  fired->trigger, fired->number);
	else if (fired_tell(e, fired))
		watchers_tell_event(t->watchers, PP_NOTICE_FIRED, e);
	else
		tell_later(t);
}

void telling_log(struct telling *t, const struct pp_spec *spec, const struct pp_fired *by)
{
	const struct event *trigger = registry_by_id(&t->lifecycle->registry, by->trigger);

	fired_log(spec, by, trigger ? trigger->truth.spec.name : NULL);
}

/* The kernel only counts firings for which the ring buffer had no room. Returns how many there are since the
 * last look; those from before the daemon started are handled, and not told. */
static uint64_t read_unread(struct telling *t, struct event *e)
{
	uint64_t before = e->unread;
	struct pp_trigger state;

	if (tree_trigger_read(t->registry, e->truth.origin, &state) < 0 || state.untold == before)
		return 0;
	e->unread = state.untold;
	if (state.untold)
		triggers_note(t->triggers, e->truth.id, state.last);
	return before == EVENT_UNREAD_UNKNOWN ? 0 : state.untold - before;
}

void telling_look(struct telling *t)
{
	const struct registry *r = &t->lifecycle->registry;

	for (size_t i = 0; i < r->n_settled; i++)
		if (r->by_id[i]->truth.spec.flags & PP_EVENT_TRIGGER)
			tell_rest(t, r->by_id[i], read_unread(t, r->by_id[i]));
}

void telling_last(struct telling *t, const struct event *e)
{
	tell_rest(t, registry_by_id(&t->lifecycle->registry, e->truth.id), 0);
}

void telling_done(struct telling *t)
{
	t->rests = sd_event_source_disable_unref(t->rests);
}
