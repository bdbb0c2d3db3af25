// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the known state of the keeper, and decides the next request to it. sideband-order.c orders
 * missing parts; sideband-take.c has the clients' requests.
 */
#include "daemon/broker/sideband/sideband.h"

#include <string.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/broker/sideband/sideband-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define BACKOFF_MAX_USEC (5 * 1000 * 1000ULL)
#define ATTEMPTS_SOON 5 /* attempts for which clients wait */
#define ATTEMPTS_MAX 12 /* after these only another wakeup triggers an attempt */

bool sideband_is_wanted(const struct sideband *s)
{
	return s->enabled && s->lifecycle->registry.n_events > 0;
}

/* ── the way to the keeper ──────────────────────────────────────────────────────────────── */

/* Facts about one connection do not hold for the next. */
static void forget_connection(struct sideband *s)
{
	s->status = (struct pp_keep_status){ 0 };
	s->pid = 0;
	s->limit = 0;
	s->dropping = s->known = false;
	s->first = 0;
	s->connection++;
	memset(s->held, 0, sizeof(s->held));
	pp_fds_close(&s->fds);
}

static void tell_unreachable(struct sideband *s, const char *why)
{
	if (!s->told)
		log_warning(
			"Cannot reach the keeper at %s: %s; names and mappings of processes are "
			"not recorded until it answers.",
			s->keeper.link.address.sun_path, why);
	s->told = true;
}

static void try_later(struct sideband *s)
{
	s->attempts++;
	s->waiting = s->attempts <= ATTEMPTS_MAX;
	if (!s->waiting)
		return;
	timer_start_backoff(s->retry, &s->backoff, BACKOFF_MAX_USEC);
}

static void reach(struct sideband *s)
{
	int r;

	if (s->waiting)
		return;
	forget_connection(s);
	r = keeper_connect(&s->keeper);
	if (r >= 0)
		return;
	tell_unreachable(s, strerror(-r));
	try_later(s);
}

static void tell_gone(struct sideband *s)
{
	if (s->gone)
		s->gone(s->userdata);
}

static void on_ended(void *userdata)
{
	struct sideband *s = userdata;
	bool kept = s->status.keeping;

	forget_connection(s);
	takings_break(s, -EAGAIN);
	if (s->keeper.stuck)
		s->refused = false; /* another keeper may succeed */
	if (s->keeper.stuck)
		s->replaced = PP_SIDEBAND_STUCK;
	else if (kept)
		s->replaced = PP_SIDEBAND_GONE;
	if (kept && s->keeper.stuck)
		log_warning(
			"The keeper's records of exited processes are lost; its successor learns "
			"the running ones.");
	else if (kept)
		log_warning(
			"The keeper is gone, and with it the records of exited processes; a new "
			"one starts.");
	else if (s->keeper.mute)
		tell_unreachable(s, "it does not answer");
	try_later(s);
	if (!sideband_is_wanted(s))
		tell_gone(s);
	sideband_continue(s);
}

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	struct sideband *s = userdata;

	s->waiting = false;
	sideband_continue(s);
	return 0;
}

/* The keeper has all it needs: from now on an outage is a new one. */
void sideband_is_whole(struct sideband *s)
{
	s->attempts = 0;
	s->backoff = TIMER_BACKOFF_MIN_USEC;
	s->told = false;
}

/* ── what it is asked ───────────────────────────────────────────────────────────────────── */

static void ask(struct sideband *s, const struct pp_fds *fds)
{
	int r = keeper_ask(&s->keeper, fds ? fds->fd : NULL, fds ? fds->n : 0);

	if (r >= 0)
		return;
	log_warning("Cannot send a request to the keeper: %s; reconnecting.", strerror(-r));
	keeper_disconnect(&s->keeper);
	on_ended(s);
}

static void ask_limit(struct sideband *s)
{
	s->limit = s->max_memory;
	keeper_request(&s->keeper, PP_KEEP_LIMIT)->max_memory = s->limit;
	ask(s, NULL);
}

static void ask_held(struct sideband *s)
{
	keeper_request(&s->keeper, PP_KEEP_CPUS_HELD)->first = s->first;
	ask(s, NULL);
}

/* Passes on the engine's descriptors; ours are closed once they are sent. */
static void hand_over(struct sideband *s)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = s->fds;
	bool tasks = s->what & PP_SIDEBAND_TASKS;
	struct pp_keep_request *request =
		keeper_request(&s->keeper, tasks ? PP_KEEP_TASKS : PP_KEEP_RINGS);

	s->fds.n = 0;
	if (!tasks) {
		request->n_cpus = s->n_page;
		memcpy(request->cpus, s->page, s->n_page * sizeof(*s->page));
	}
	ask(s, &fds);
}

/* ── what it answers ────────────────────────────────────────────────────────────────────── */

static void held_answered(struct sideband *s, const struct pp_keep_answer *a)
{
	for (uint32_t i = 0; i < a->n_cpus; i++) {
		if (a->cpus[i].cpu >= PP_CPUS_MAX || a->cpus[i].cpu < s->first)
			continue;
		s->held[a->cpus[i].cpu] = a->cpus[i].generation + 1;
		s->first = a->cpus[i].cpu + 1;
	}
	s->known = !a->more || a->n_cpus == 0;
	s->look = true;
}

static void rings_answered(struct sideband *s, const struct pp_keep_answer *a)
{
	if (a->error) {
		s->refused = true;
		log_error(
			"The keeper cannot receive the kernel's records of processes: %s; retrying "
			"later.",
			strerror(a->error));
		return;
	}
	for (uint32_t i = 0; i < s->n_page; i++)
		s->held[s->page[i].cpu] = s->page[i].generation + 1;
}

static void tasks_answered(struct sideband *s, const struct pp_keep_answer *a)
{
	if (a->error) {
		s->refused = true;
		log_error(
			"The keeper cannot read the list of running processes: %s; retrying later.",
			strerror(a->error));
	} else if (a->status.tasks) {
		sideband_is_whole(s);
	}
}

static void on_answered(void *userdata, enum pp_keep_type type, const struct pp_keep_answer *a,
			struct pp_fds *fds)
{
	struct sideband *s = userdata;

	s->status = a->status;
	s->pid = a->pid;
	switch (type) {
	case PP_KEEP_HELLO:
	case PP_KEEP_TAKE:
		takings_answered(s, a, fds);
		break;
	case PP_KEEP_CPUS_HELD:
		held_answered(s, a);
		break;
	case PP_KEEP_RINGS:
		rings_answered(s, a);
		break;
	case PP_KEEP_TASKS:
		tasks_answered(s, a);
		break;
	case PP_KEEP_DROP:
		s->dropping = false;
		memset(s->held, 0, sizeof(s->held));
		s->look = true;
		break;
	default: /* nothing to remember, or not asked here */
		break;
	}
	sideband_continue(s);
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

/* There are no events: drops the recorded sideband, then disconnects. The keeper must first say
 * whether it has any: it may be older than this broker. */
static void leave(struct sideband *s)
{
	bool may_keep = s->status.keeping || s->keeper.n_asked > 0;

	takings_end(s, 0);
	s->replaced = PP_SIDEBAND_FIRST;
	if (s->left)
		return;
	if (!keeper_is_connected(&s->keeper)) {
		if (s->waiting)
			return;
		forget_connection(s);
		s->left = s->attempts > ATTEMPTS_MAX || keeper_connect(&s->keeper) < 0;
	} else if (s->keeper.greeted && may_keep && !s->dropping) {
		s->dropping = true;
		s->connection++; /* an order under way is for a connection that will be gone */
		keeper_request(&s->keeper, PP_KEEP_DROP);
		ask(s, NULL);
	} else if (keeper_is_idle(&s->keeper)) {
		s->left = true;
		keeper_disconnect(&s->keeper);
		forget_connection(s);
		sideband_is_whole(s);
		tell_gone(s);
	}
}

/* Whether clients must not wait for sideband that is not recorded by now. */
static bool is_settled(const struct sideband *s)
{
	return !s->ordering && s->fds.n == 0 && (s->refused || !orders_is_up(s->lifecycle->orders));
}

/* The engine and the keeper work in parallel. */
static void go_on(struct sideband *s)
{
	sideband_order(s);
	takings_ask(s, is_settled(s));
}

static void keep(struct sideband *s)
{
	s->left = false;
	if (!keeper_is_connected(&s->keeper))
		reach(s);
	if (s->keeper.mute ||
	    (!keeper_is_connected(&s->keeper) && (!s->waiting || s->attempts >= ATTEMPTS_SOON)))
		takings_end(s, 0);
	if (!keeper_is_idle(&s->keeper))
		return;
	if (s->limit != s->max_memory)
		ask_limit(s);
	else if (!s->known)
		ask_held(s);
	else if (s->fds.n > 0)
		hand_over(s);
	else
		go_on(s);
}

void sideband_continue(struct sideband *s)
{
	if (s->stepping || !s->lifecycle->synced)
		return;
	s->stepping = true;
	if (sideband_is_wanted(s))
		keep(s);
	else
		leave(s);
	s->stepping = false;
}

/* ── what others tell ───────────────────────────────────────────────────────────────────── */

void sideband_configure(struct sideband *s, bool enabled, uint64_t max_memory)
{
	s->enabled = enabled;
	s->max_memory = max_memory;
	s->refused = false;
	sideband_continue(s);
}

/* Where the kernel keeps no account of CPUs, any CPU may have been offline. */
void sideband_came(struct sideband *s)
{
	_cleanup_close_ int account = tree_cpus_open(s->registry);

	if (account < 0)
		memset(s->held, 0, sizeof(s->held));
	s->look = true;
	sideband_continue(s);
}

void sideband_went(struct sideband *s, unsigned cpu)
{
	s->held[cpu] = 0;
}

void sideband_retry(struct sideband *s)
{
	timer_stop(s->retry);
	s->waiting = s->refused = false;
	s->look = true;
	sideband_continue(s);
}

bool sideband_is_leaving(const struct sideband *s)
{
	return !sideband_is_wanted(s) && keeper_is_connected(&s->keeper);
}

enum pp_sideband_why sideband_why(const struct sideband *s, bool keeping)
{
	if (keeping)
		return s->replaced;
	if (!s->enabled)
		return PP_SIDEBAND_OFF;
	if (!sideband_is_wanted(s))
		return PP_SIDEBAND_NOTHING;
	if (s->keeper.mute || s->keeper.stuck)
		return PP_SIDEBAND_STUCK;
	if (!keeper_is_connected(&s->keeper))
		return PP_SIDEBAND_AWAY;
	return s->refused ? PP_SIDEBAND_REFUSED : PP_SIDEBAND_SOON;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int sideband_init(struct sideband *s, sd_event *loop, const char *path)
{
	int r;

	s->keeper.answered = on_answered;
	s->keeper.ended = on_ended;
	s->keeper.userdata = s;
	s->last_taking = &s->first_taking;
	s->last_uid = UINT32_MAX;
	s->backoff = TIMER_BACKOFF_MIN_USEC;
	r = keeper_init(&s->keeper, loop, path);
	return r < 0 ? r : timer_add(loop, &s->retry, on_retry, s);
}

void sideband_done(struct sideband *s)
{
	s->stepping = true; /* nothing starts any more */
	takings_break(s, -ECANCELED);
	if (s->last_taking)
		takings_end(s, -ECANCELED);
	keeper_done(&s->keeper);
	s->retry = sd_event_source_disable_unref(s->retry);
	pp_fds_close(&s->fds);
}
