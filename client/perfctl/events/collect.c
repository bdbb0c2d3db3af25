// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/collect.h"

#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/events/firing.h"
#include "client/perfctl/events/tape.h"
#include "proto/clock.h"
#include "proto/fired.h"

#define SECOND 1000000000ULL
#define RETRY_MAX (60 * SECOND)
#define IDLE (3 * SECOND)
#define JUST_NOW (SECOND / 2)
#define LOOKS_MAX 10 /* in a row, while others save or release the same tapes */

struct collecting {
	struct call *call;
	const struct collect_options *options;
	struct perfpersist *p;
	bool came;   /* a notice of a tape */
	int missing; /* exit code: with --once, whether all that are named have frozen something */
	uint64_t retry; /* ns, until what could not be written is tried again; 0: nothing waits */
	unsigned looks;
	bool in_vain; /* see struct firing */
};

static int compare(const void *a, const void *b)
{
	const struct perfpersist_tape *x = a, *y = b;

	if (x->trigger != y->trigger)
		return x->trigger < y->trigger ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* What a trigger only freezes is saved if that trigger is named. */
static bool is_wanted(const struct collecting *c, const struct perfpersist_tape *t)
{
	const struct collect_options *o = c->options;

	if (!o->n_triggers)
		return t->action != PERFPERSIST_ACTION_FREEZE;
	for (size_t i = 0; i < o->n_triggers; i++)
		if (tape_is_of(t, &o->triggers[i]))
			return true;
	return false;
}

/* EXIT_NOT_FOUND: some are named that have frozen nothing. */
static int find_named(const struct collect_options *o, const struct perfpersist_tape *tapes,
		      size_t n)
{
	int code = EXIT_OK;

	for (size_t i = 0; i < o->n_triggers; i++) {
		size_t k;

		for (k = 0; k < n && !tape_is_of(&tapes[k], &o->triggers[i]); k++)
			;
		if (k == n)
			code = tape_not_found(&o->triggers[i]);
	}
	return code;
}

/* Whether what this trigger freezes is to be saved. */
static bool is_asked_for(const struct collect_options *o, const struct perfpersist_trigger *t)
{
	if (t->action != PERFPERSIST_ACTION_SNAPSHOT && t->action != PERFPERSIST_ACTION_FREEZE)
		return false;
	for (size_t i = 0; i < o->n_triggers; i++)
		if (!strcmp(o->triggers[i].ns, t->ns) && !strcmp(o->triggers[i].name, t->name))
			return true;
	return !o->n_triggers && t->action == PERFPERSIST_ACTION_SNAPSHOT;
}

/* Whether one has fired just now, and the daemon has no tape of it yet. */
static bool is_on_its_way(const struct collecting *c)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	size_t n = 0;

	if (perfpersist_triggers(c->p, NULL, &all, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_asked_for(c->options, &all[i]) && all[i].last && !all[i].tapes &&
		    all[i].n_targets && (int64_t)(now - all[i].last) < (int64_t)JUST_NOW)
			return true;
	return false;
}

static void wait_for_tapes(const struct collecting *c)
{
	uint64_t due = pp_clock_ns(CLOCK_MONOTONIC) + JUST_NOW;

	while (!signals_caught() && pp_clock_ns(CLOCK_MONOTONIC) < due && is_on_its_way(c))
		nanosleep(&(struct timespec){ .tv_nsec = SECOND / 50 }, NULL);
}

/* -errno: of the first one that could not be saved. */
static int save_all(struct collecting *c)
{
	_cleanup_free_ struct perfpersist_tape *tapes = NULL;
	size_t n = 0, end;
	int r = perfpersist_tapes(c->p, NULL, &tapes, &n);

	if (r < 0) {
		complain("%s", perfpersist_error(c->p));
		return r;
	}
	if (c->options->once && c->looks == 0)
		c->missing = find_named(c->options, tapes, n);
	if (n)
		qsort(tapes, n, sizeof(*tapes), compare);
	/* One that cannot be saved does not keep the others. */
	for (size_t i = 0; r != -ECONNRESET && i < n && !signals_caught(); i = end) {
		int saved;

		for (end = i + 1; end < n && tapes[end].trigger == tapes[i].trigger &&
				  tapes[end].number == tapes[i].number;)
			end++;
		if (!is_wanted(c, &tapes[i]))
			continue;
		saved = firing_save(&(struct firing){
			.call = c->call,
			.p = c->p,
			.options = c->options,
			.tapes = &tapes[i],
			.n = end - i,
			.is_last_look = c->looks == LOOKS_MAX,
			.in_vain = &c->in_vain,
		});
		if (saved == -ECONNRESET || saved == -ESTALE || r >= 0)
			r = saved;
	}
	return r;
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *n,
		      void *userdata)
{
	struct collecting *c = userdata;

	/* After lost notices there may be tapes as well. */
	c->came |= n->kind == PERFPERSIST_NOTICE_TAPE || n->kind == PERFPERSIST_NOTICE_LOST;
}

static void plan(struct collecting *c, int r)
{
	c->retry = r >= 0 ? 0 : c->retry ? MIN(2 * c->retry, RETRY_MAX) : SECOND;
}

static int look(struct collecting *c)
{
	int r;

	c->came = false;
	c->looks = 0;
	do
		r = save_all(c);
	while (r == -ESTALE && !signals_caught() && c->looks++ < LOOKS_MAX);
	plan(c, r);
	return r;
}

/* How long it waits for the next tape. */
static uint64_t patience(const struct collecting *c)
{
	if (c->retry)
		return c->retry;
	return c->options->until_idle ? IDLE : 3600 * SECOND;
}

static int wait_for_more(struct collecting *c)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), due = now + patience(c);
	int r;

	for (; !signals_caught() && !c->came && now < due; now = pp_clock_ns(CLOCK_MONOTONIC)) {
		signals_wait(due - now, perfpersist_fd(c->p));
		r = perfpersist_dispatch(c->p);
		if (r < 0)
			return call_failed(c->p, r);
	}
	/* Files grow old while nothing happens. */
	if (!c->came)
		spool_make_room(c->options->directory, &c->options->limits, NULL, 0);
	return EXIT_OK;
}

static bool is_over(const struct collecting *c)
{
	return signals_caught() || (c->options->until_idle && !c->came && !c->retry);
}

int collect(struct call *call, const struct collect_options *options)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct collecting c = { .call = call, .options = options };
	int r = call_connect(call, &p);

	if (r)
		return r;
	c.p = p;
	if (mkdir(options->directory, 0750) < 0 && errno != EEXIST) {
		complain("cannot make %s: %s", options->directory, strerror(errno));
		return EXIT_FAILED;
	}
	spool_sweep(options->directory);
	signals_catch();
	r = options->once ? 0 : perfpersist_watch(p, NULL, on_notice, &c);
	if (r < 0)
		return call_failed(p, r);
	if (options->once)
		wait_for_tapes(&c);
	do {
		r = look(&c);
		if (options->once && signals_caught())
			complain("interrupted: what is not saved waits");
		if (options->once)
			return r < 0 || signals_caught() ? EXIT_FAILED : c.missing;
		if (r == -ECONNRESET || r == -ECONNREFUSED)
			return EXIT_NO_DAEMON;
		r = wait_for_more(&c);
	} while (!r && !is_over(&c));
	return r;
}
