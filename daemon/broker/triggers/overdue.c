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
#define RETRY 1000000000ULL /* without an engine */

struct overdue_table {
	uint64_t id;		     /* the trigger's */
	const struct pp_pair *pairs; /* NULL: it cannot be mapped, which was logged */
	bool is_there;
};

/* ── the tables ─────────────────────────────────────────────────────────────────────────── */

static void unmap(struct overdue_table *t)
{
	if (t->pairs)
		munmap((void *)t->pairs, PP_PAIRS_SIZE);
	t->pairs = NULL;
}

static const struct pp_pair *map(const char *registry, const struct event *e)
{
	_cleanup_close_ int fd = tree_pairs_open(registry, e->truth.origin);
	const struct pp_spec *spec = &e->truth.spec;
	void *at = MAP_FAILED;

	if (fd >= 0)
		at = mmap(NULL, PP_PAIRS_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		return at;
	log_event(
		LOG_WARNING, spec->ns, spec->name,
		"Trigger %s/%s does not fire while an end is missing, but only when it comes: its "
		"table cannot be mapped: %s.",
		spec->ns, spec->name, strerror(fd < 0 ? -fd : errno));
	return NULL;
}

static bool has_pairs(const struct event *e)
{
	return e->truth.spec.flags & PP_EVENT_TRIGGER &&
	       e->trigger.condition.kind == PP_CONDITION_PAIR && e->state != PP_EVENT_DELETING;
}

static void add(struct overdue *o, const struct event *e)
{
	struct overdue_table *t;

	for (t = o->tables; t < o->tables + o->n; t++)
		if (t->id == e->truth.id) {
			t->is_there = true;
			return;
		}
	t = reallocarray(o->tables, o->n + 1, sizeof(*t));
	if (!t) /* tried again at the next change */
		return;
	o->tables = t;
	o->tables[o->n++] = (struct overdue_table){
		.id = e->truth.id,
		.pairs = map(o->registry, e),
		.is_there = true,
	};
}

static void find_tables(struct overdue *o)
{
	const struct registry *r = &o->lifecycle->registry;
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		o->tables[i].is_there = false;
	for (size_t i = 0; i < r->n_settled; i++)
		if (has_pairs(r->by_id[i]))
			add(o, r->by_id[i]);
	for (size_t i = 0; i < o->n; i++) {
		if (o->tables[i].is_there)
			o->tables[n++] = o->tables[i];
		else
			unmap(&o->tables[i]);
	}
	o->n = n;
}

/* ── looking ────────────────────────────────────────────────────────────────────────────── */

/* Whether a pair is overdue; else *next is no later than the time when one can be. */
static bool look(const struct overdue_table *t, uint64_t longer_than, uint64_t now, uint64_t *next)
{
	uint64_t oldest = now;

	/* Subtracted, what has not begun is later than all others. */
	for (size_t i = 0; i < PP_PAIRS_MAX; i++)
		oldest = MIN(oldest, t->pairs[i].since - PP_PAIR_TAKEN - 1);
	*next = MIN(*next, oldest + longer_than);
	return now - oldest > longer_than;
}

static void on_done(struct waiter *waiter, const struct outcome *outcome);

/* *next: see look(). */
static void look_at(struct overdue *o, const struct overdue_table *t, uint64_t now, uint64_t *next)
{
	struct event *e = registry_by_id(&o->lifecycle->registry, t->id);
	int r;

	if (!e || !t->pairs || !has_pairs(e))
		return;
	*next = MIN(*next, now + e->trigger.condition.longer_than);
	/* What a paused one would find is forgotten when it goes on. */
	if (e->state == PP_EVENT_PAUSED || !look(t, e->trigger.condition.longer_than, now, next))
		return;
	*next = MIN(*next, now);
	if (o->ordered)
		return;
	o->waiter = (struct waiter){ .done = on_done, .uid = e->truth.spec.creator };
	o->ordered = true;
	r = lifecycle_fire(o->lifecycle, e, true, &o->waiter);
	if (r < 0) {
		o->ordered = false;
		*next = MAX(*next, now + RETRY);
	}
}

static void look_at_all(struct overdue *o)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), next = UINT64_MAX, pause;
	int r;

	for (size_t i = 0; i < o->n; i++)
		look_at(o, &o->tables[i], now, &next);
	if (next == UINT64_MAX)
		next = now + RETRY;
	pause = MAX(OVERDUE_INTERVAL, o->n * INTERVAL_OF_TABLE);
	pause = MAX(pause, next > now ? next - now : 0);
	r = timer_start(o->timer, pause / 1000 + 1);
	if (r < 0)
		log_error("Cannot watch for missing ends: %s.", strerror(-r));
}

/* A refusal is looked at again: the pairs are still there. The engine's end is no refusal of theirs. */
static void on_done(struct waiter *waiter, const struct outcome *outcome _unused_)
{
	struct overdue *o = (struct overdue *)waiter;

	o->ordered = false;
}

static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	look_at_all(userdata);
	return 0;
}

/* ── from outside ───────────────────────────────────────────────────────────────────────── */

void overdue_continue(struct overdue *o)
{
	int enabled = SD_EVENT_OFF, r = 0;

	find_tables(o);
	if (!o->n) {
		timer_stop(o->timer);
		return;
	}
	if (!o->timer)
		r = timer_add(o->loop, &o->timer, on_timer, o);
	if (r >= 0)
		r = sd_event_source_get_enabled(o->timer, &enabled);
	if (r >= 0 && enabled == SD_EVENT_OFF)
		r = timer_start(o->timer, OVERDUE_INTERVAL / 1000);
	if (r < 0)
		log_error("Cannot watch for missing ends: %s.", strerror(-r));
}

void overdue_done(struct overdue *o)
{
	for (size_t i = 0; i < o->n; i++)
		unmap(&o->tables[i]);
	free(o->tables);
	o->tables = NULL;
	o->n = 0;
	o->timer = sd_event_source_disable_unref(o->timer);
}
