// SPDX-License-Identifier: LGPL-2.1-or-later
/* Looks for pairs without an end. See overdue.h. */
#include "daemon/broker/triggers/overdue.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

/* A look at a table takes some 30 us: with this less than two hundredths of a CPU. */
#define INTERVAL_OF_TABLE 2000000ULL
#define RETRY 1000000000ULL /* of what failed */
#define TELL_EVERY 600	    /* s */

/* ── the tables ─────────────────────────────────────────────────────────────────────────── */

static bool has_pairs(const struct event *e)
{
	return e->truth.spec.flags & PP_EVENT_TRIGGER &&
	       e->trigger.condition.kind == PP_CONDITION_PAIR && e->state != PP_EVENT_DELETING;
}

/* It is unmapped when the event is freed. */
static bool map(struct overdue *o, struct event *e)
{
	_cleanup_close_ int fd = tree_pairs_open(o->registry, e->truth.origin);
	const struct pp_spec *spec = &e->truth.spec;
	void *at = MAP_FAILED;

	if (fd >= 0)
		at = mmap(NULL, PP_PAIRS_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED) {
		e->pairs = at;
		return true;
	}
	if (log_is_due(&o->told, TELL_EVERY))
		log_event(LOG_WARNING, spec->ns, spec->name,
			  "Trigger %s/%s does not fire while an end is missing, but only when it "
			  "comes: its table cannot be mapped: %s. This is tried again.",
			  spec->ns, spec->name, strerror(fd < 0 ? -fd : errno));
	return false;
}

/* ── looking ────────────────────────────────────────────────────────────────────────────── */

/* Whether a pair is overdue; if not, *next is no later than the time when one can be. */
static bool is_any_overdue(const struct event *e, uint64_t now, uint64_t *next)
{
	uint64_t oldest = now, longer_than = e->trigger.condition.longer_than;

	/* Subtracted, what has not begun is later than all others. */
	for (size_t i = 0; i < PP_PAIRS_MAX; i++)
		oldest = MIN(oldest, e->pairs[i].since - PP_PAIR_TAKEN - 1);
	if (now - oldest > longer_than)
		return true;
	*next = MIN(*next, oldest + longer_than);
	return false;
}

/* Whether to fire; if not, *next is no later than when to look again. What a paused one would find is
 * forgotten when it goes on. */
static bool look(struct overdue *o, struct event *e, uint64_t now, uint64_t *next)
{
	if (!e->pairs && !map(o, e)) {
		*next = MIN(*next, now + RETRY);
		return false;
	}
	if (e->state != PP_EVENT_PAUSED)
		return is_any_overdue(e, now, next);
	*next = MIN(*next, now + e->trigger.condition.longer_than);
	return false;
}

/* Not before this time has passed, nor before the pause that the tables of the last look require. */
static void start(struct overdue *o, uint64_t ns)
{
	uint64_t pause = MAX(OVERDUE_INTERVAL, o->looked * INTERVAL_OF_TABLE);
	int r = timer_start(o->timer, MAX(pause, ns) / 1000 + 1);

	if (r < 0)
		log_error("Cannot watch for missing ends: %s.", strerror(-r));
}

/* A refusal is looked at again: the pairs are still there. The engine's end is no refusal of theirs. */
static void on_done(struct waiter *waiter, const struct outcome *outcome _unused_)
{
	struct overdue *o = (struct overdue *)waiter;

	o->ordered = false;
	start(o, 0);
}

static bool fire(struct overdue *o, struct event *e)
{
	o->waiter = (struct waiter){ .done = on_done, .uid = e->truth.spec.creator };
	o->after = e->truth.id;
	o->ordered = true;
	if (lifecycle_fire(o->lifecycle, e, true, &o->waiter) >= 0)
		return true;
	o->ordered = false;
	return false;
}

/* One order at a time; it begins behind the last one, so that none keeps the others waiting. */
static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct overdue *o = userdata;
	const struct registry *r = &o->lifecycle->registry;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), next = UINT64_MAX;
	size_t first = registry_after(r, o->after);

	o->soon = false;
	o->looked = 0;
	for (size_t i = 0; i < r->n_settled; i++) {
		struct event *e = r->by_id[(first + i) % r->n_settled];

		if (!has_pairs(e))
			continue;
		o->looked++;
		if (!look(o, e, now, &next))
			continue;
		if (fire(o, e))
			return 0;
		next = MIN(next, now + RETRY);
	}
	if (o->looked)
		start(o, next > now ? next - now : 0);
	return 0;
}

/* ── from outside ───────────────────────────────────────────────────────────────────────── */

void overdue_continue(struct overdue *o)
{
	const struct registry *r = &o->lifecycle->registry;
	bool any = false, is_new = false;
	int enabled = SD_EVENT_OFF;

	for (size_t i = 0; i < r->n_settled; i++)
		if (has_pairs(r->by_id[i])) {
			any = true;
			is_new |= !r->by_id[i]->pairs;
		}
	if (!any) {
		timer_stop(o->timer);
		return;
	}
	if (!o->timer && timer_add(o->loop, &o->timer, on_timer, o) < 0) {
		log_error("Cannot watch for missing ends: no memory.");
		return;
	}
	sd_event_source_get_enabled(o->timer, &enabled);
	if (o->ordered || (enabled != SD_EVENT_OFF && (!is_new || o->soon)))
		return;
	o->soon = is_new;
	start(o, 0);
}

void overdue_done(struct overdue *o)
{
	o->timer = sd_event_source_disable_unref(o->timer);
}
