// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the known state of the keeper's AUX areas, and decides the next request to it.
 * auxtrace-held.c has that state, auxtrace-order.c compares and orders, auxtrace-take.c has those
 * who wait.
 */
#include "daemon/broker/auxtrace/auxtrace.h"

#include <string.h>

#include "daemon/broker/auxtrace/auxtrace-internal.h"
#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define BACKOFF_MAX_USEC (5 * 1000 * 1000ULL)
#define AGAIN_USEC (10 * 1000 * 1000ULL) /* until what was refused is tried again */
#define ATTEMPTS_SOON 5			 /* attempts for which clients wait */
#define ATTEMPTS_MAX 12			 /* to reach a keeper from which nothing is wanted */

static const char no_keeper[] =
	"The keeper, which holds the areas that the PMU traces into, did not answer or is not running; "
	"look at the daemon's log, and try again.";

static const char no_engine[] =
	"The engine, which opens the perf events of AUX areas, is not running just now; look at its log, and try "
	"again.";

static bool is_wanted(const struct auxtrace *a)
{
	const struct registry *r = &a->lifecycle->registry;

	for (size_t i = 0; i < r->n_settled; i++)
		if (r->by_id[i]->truth.spec.flags & PP_EVENT_AUX)
			return true;
	return false;
}

/* ── the way to the keeper ──────────────────────────────────────────────────────────────── */

/* Facts about one connection do not hold for the next. */
static void forget_connection(struct auxtrace *a)
{
	aux_held_forget(a);
	a->connection++;
	pp_fds_close(&a->fds);
}

static void try_later(struct auxtrace *a)
{
	a->attempts++;
	a->waiting = true;
	if (a->attempts == ATTEMPTS_SOON && is_wanted(a))
		log_warning("Cannot reach the keeper at %s, which holds the AUX areas; retrying.",
			    a->keeper.link.address.sun_path);
	if (a->attempts >= ATTEMPTS_SOON) {
		aux_takings_end(a, -EAGAIN);
		aux_waits_end(a, 0, EAGAIN, no_keeper);
	}
	timer_start_backoff(a->retry, &a->backoff, BACKOFF_MAX_USEC);
}

static void reach(struct auxtrace *a)
{
	if (a->waiting)
		return;
	forget_connection(a);
	if (keeper_connect(&a->keeper) < 0)
		try_later(a);
}

static void on_ended(void *userdata)
{
	struct auxtrace *a = userdata;

	if (a->known && a->n_held > 0)
		log_warning(
			"The keeper is gone, and with it what %zu AUX area%s held; %s made anew.",
			a->n_held, a->n_held == 1 ? "" : "s",
			a->n_held == 1 ? "it is" : "they are");
	forget_connection(a);
	aux_takings_break(a, -EAGAIN);
	try_later(a);
	if (!is_wanted(a) && a->gone)
		a->gone(a->userdata);
	auxtrace_continue(a);
}

static int on_rested(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	auxtrace_continue(userdata);
	return 0;
}

static int on_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	auxtrace_retry(userdata);
	return 0;
}

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	struct auxtrace *a = userdata;

	a->waiting = false;
	auxtrace_continue(a);
	return 0;
}

/* ── what it is asked ───────────────────────────────────────────────────────────────────── */

void auxtrace_ask(struct auxtrace *a, const struct pp_fds *fds)
{
	int r = keeper_ask(&a->keeper, fds ? fds->fd : NULL, fds ? fds->n : 0);

	if (r >= 0)
		return;
	log_warning("Cannot send a request to the keeper: %s; reconnecting.", strerror(-r));
	keeper_disconnect(&a->keeper);
	on_ended(a);
}

static void ask_held(struct auxtrace *a)
{
	struct pp_keep_request *q = keeper_request(&a->keeper, PP_KEEP_AREAS_HELD);

	q->event = a->listed.event;
	q->first = a->listed.cpu;
	auxtrace_ask(a, NULL);
}

/* Passes on the engine's descriptors; ours are closed then. False: the event goes, or is gone. */
static bool hand_over(struct auxtrace *a)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = a->fds;
	const struct event *e = auxtrace_owner(a, a->origin);
	struct pp_keep_request *q = keeper_request(&a->keeper, PP_KEEP_AREAS);

	a->fds.n = 0;
	if (!e || e->state == PP_EVENT_DELETING)
		return false;
	q->event = a->origin;
	q->aux_size = e->truth.spec.data_size;
	q->what = e->truth.paused;
	q->n_cpus = a->n_page;
	q->n_beside = e->truth.n_sources - 1;
	memcpy(q->cpus, a->page, a->n_page * sizeof(*a->page));
	auxtrace_ask(a, &fds);
	return true;
}

static void ask_drop(struct auxtrace *a, const struct pp_keep_area *area)
{
	struct pp_keep_request *q = keeper_request(&a->keeper, PP_KEEP_AREAS_DROP);

	q->event = area->event;
	q->first = area->cpu;
	auxtrace_ask(a, NULL);
}

static void ask_pause(struct auxtrace *a, const struct event *e)
{
	struct pp_keep_request *q = keeper_request(&a->keeper, PP_KEEP_AREAS_PAUSE);

	q->event = e->truth.origin;
	q->what = e->truth.paused;
	auxtrace_ask(a, NULL);
}

/* Brings the areas that are held into the state that is wanted. Whether there was something to do. */
static bool correct(struct auxtrace *a)
{
	for (size_t i = 0; i < a->n_held; i++) {
		const struct pp_keep_area *area = &a->held[i].is;
		const struct event *e = auxtrace_owner(a, area->event);

		if (!e || !pp_cpumask_test(&e->truth.rings, area->cpu) ||
		    area->aux_size != e->truth.spec.data_size) {
			ask_drop(a, area);
			return true;
		}
		if (area->paused != e->truth.paused) {
			ask_pause(a, e);
			return true;
		}
	}
	return false;
}

/* What is missing has to be opened anew, which a PMU that traces for one at a time refuses while we hold it. */
static bool drop_stale(struct auxtrace *a)
{
	const struct pp_keep_area *area = auxtrace_stale(a);

	if (area)
		ask_drop(a, area);
	return area != NULL;
}

/* The kernel stops an event for good whose PMU finds no room or faults, and tells nobody whom we
 * could ask. Whether there was an event to be told its state. */
static bool restate(struct auxtrace *a)
{
	const struct held_area *held = a->restate ? aux_held_from(a, a->restate) : NULL;
	const struct event *e = held ? auxtrace_owner(a, held->is.event) : NULL;

	a->restate = held ? held->is.event + 1 : 0;
	if (e)
		ask_pause(a, e);
	return e != NULL;
}

/* ── what it answers ────────────────────────────────────────────────────────────────────── */

static void held_answered(struct auxtrace *a, const struct pp_keep_answer *answer)
{
	size_t n = MIN(answer->n_areas, (uint32_t)PP_KEEP_CPUS);

	if (aux_held_list(a, answer->areas, n, answer->more))
		return;
	log_error("The keeper's list of AUX areas is not sorted, or there is no memory for it; "
		  "reconnecting.");
	keeper_disconnect(&a->keeper);
	on_ended(a);
}

static const char *why_refused(int error)
{
	switch (error) {
	case EOPNOTSUPP:
	case EINVAL:
		return "Its PMU has no AUX area, or none of that size; give another -m.";
	case ENOMEM:
		return "The kernel has no memory for its AUX areas; give a smaller -m.";
	case EPERM:
		return "The keeper may not lock so much memory; raise LimitMEMLOCK= of the keeper, or "
		       "give a smaller -m.";
	case ENOSPC:
		return "The keeper holds as many AUX areas as it can; delete events that have some.";
	default:
		return NULL;
	}
}

static void areas_failed(struct auxtrace *a, int error)
{
	char sentence[128];

	snprintf(sentence, sizeof(sentence), "The keeper cannot map its AUX areas: %s.",
		 strerror(error));
	auxtrace_refused(a, a->about, error, why_refused(error) ?: sentence);
	aux_held_forget(a); /* it may have some of them */
}

static void areas_answered(struct auxtrace *a, const struct pp_keep_request *q)
{
	struct event *e = auxtrace_owner(a, q->event);

	for (uint32_t i = 0; i < q->n_cpus; i++) {
		const struct pp_keep_area area = {
			.event = q->event,
			.generation = q->cpus[i].generation,
			.aux_size = q->aux_size,
			.cpu = q->cpus[i].cpu,
			.paused = q->what,
		};
		struct held_area *held = aux_held_put(a, &area);

		if (held)
			held->dead = false;
		else
			aux_held_forget(a);
		if (e)
			pp_cpumask_clear(&e->aux_lacks, area.cpu);
	}
	if (e && pp_cpumask_count(&e->aux_lacks) == 0)
		e->aux_error = 0;
}

/* After a failure, too: else it would be asked again at once. */
static void pause_answered(struct auxtrace *a, const struct pp_keep_request *q, int error)
{
	bool changes = false;

	for (size_t i = 0; i < a->n_held; i++) {
		struct pp_keep_area *area = &a->held[i].is;

		changes |= area->event == q->event && area->paused != q->what;
		if (area->event == q->event)
			area->paused = q->what;
	}
	if (error && changes)
		log_error("The keeper cannot %s tracing; this is tried again: %s.",
			  q->what ? "pause" : "resume", strerror(error));
}

static void on_answered(void *userdata, enum pp_keep_type type, const struct pp_keep_answer *answer,
			struct pp_fds *fds)
{
	struct auxtrace *a = userdata;
	const struct pp_keep_request *q = &a->keeper.out; /* there is one at a time */

	switch (type) {
	case PP_KEEP_AREAS_HELD:
		held_answered(a, answer);
		break;
	case PP_KEEP_AREAS:
		if (answer->error)
			areas_failed(a, answer->error);
		else
			areas_answered(a, q);
		break;
	case PP_KEEP_AREAS_PAUSE:
		pause_answered(a, q, answer->error);
		break;
	case PP_KEEP_AREAS_DROP:
		aux_held_drop(a, q->event, q->first);
		break;
	case PP_KEEP_AREAS_TAKE:
		aux_takings_answered(a, answer, fds);
		break;
	default:
		break;
	}
	auxtrace_continue(a);
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

static void leave(struct auxtrace *a)
{
	if (keeper_is_connected(&a->keeper)) {
		keeper_disconnect(&a->keeper);
		forget_connection(a);
	}
	a->left = true;
	aux_takings_end(a, -ENODATA);
	if (a->gone)
		a->gone(a->userdata);
}

/* The engine and the keeper work in parallel. Where nothing is left to do, an outage is a new one: a
 * keeper that dies of a request is not asked for it without a pause. */
static void go_on(struct auxtrace *a)
{
	bool ordering = auxtrace_order(a), asking = aux_takings_ask(a);

	if (ordering || asking)
		return;
	a->attempts = 0;
	a->backoff = TIMER_BACKOFF_MIN_USEC;
	if (!is_wanted(a))
		leave(a);
}

/* A broker that starts asks once, even if it wants nothing: an earlier one may have left areas. */
static void keep(struct auxtrace *a)
{
	if (!keeper_is_connected(&a->keeper))
		reach(a);
	if (!keeper_is_connected(&a->keeper) && a->attempts > ATTEMPTS_MAX && !is_wanted(a))
		leave(a);
	if (!keeper_is_idle(&a->keeper))
		return;
	if (!a->known)
		ask_held(a);
	else if (a->fds.n > 0 && hand_over(a))
		return;
	else if (!correct(a) && !restate(a) && !drop_stale(a))
		go_on(a);
}

void auxtrace_continue(struct auxtrace *a)
{
	if (a->stepping || !a->lifecycle->synced)
		return;
	a->stepping = true;
	if (is_wanted(a))
		a->left = false;
	if (!a->left)
		keep(a);
	else
		aux_takings_end(a, -ENODATA);
	if (!orders_is_patient(a->lifecycle->orders))
		aux_waits_end(a, 0, EAGAIN, no_engine);
	aux_waits_check(a);
	if (is_wanted(a) && sd_event_source_get_enabled(a->again, NULL) == 0)
		timer_start(a->again, AGAIN_USEC);
	a->stepping = false;
}

bool auxtrace_is_leaving(const struct auxtrace *a)
{
	return !a->left && !is_wanted(a) && keeper_is_connected(&a->keeper);
}

void auxtrace_retry(struct auxtrace *a)
{
	const struct registry *r = &a->lifecycle->registry;

	for (size_t i = 0; i < r->n_settled; i++)
		r->by_id[i]->aux_refused = (struct pp_cpumask){};
	a->restate = 1;
	auxtrace_continue(a);
}

/* Where the kernel keeps an account, the generation tells it, and in time. The keeper keeps the area:
 * the trace in it can be read until another is asked for. */
void auxtrace_went(struct auxtrace *a, unsigned cpu)
{
	_cleanup_close_ int account = tree_cpus_open(a->registry);

	for (size_t i = 0; account < 0 && i < a->n_held; i++)
		a->held[i].dead |= a->held[i].is.cpu == cpu;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int auxtrace_init(struct auxtrace *a, sd_event *loop, const char *path)
{
	int r;

	a->keeper.answered = on_answered;
	a->keeper.ended = on_ended;
	a->keeper.userdata = a;
	a->keeper.patient = true; /* the sideband's connection has TASKS */
	a->last_taking = &a->first_taking;
	a->last_uid = UINT32_MAX;
	a->backoff = TIMER_BACKOFF_MIN_USEC;
	r = keeper_init(&a->keeper, loop, path);
	if (r >= 0)
		r = timer_add(loop, &a->retry, on_retry, a);
	if (r >= 0)
		r = timer_add(loop, &a->again, on_again, a);
	return r < 0 ? r : timer_add(loop, &a->rest, on_rested, a);
}

void auxtrace_done(struct auxtrace *a)
{
	a->stepping = true; /* nothing starts any more */
	aux_takings_break(a, -ECANCELED);
	if (a->last_taking)
		aux_takings_end(a, -ECANCELED);
	aux_waits_end(a, 0, ECANCELED, "The daemon ends.");
	keeper_done(&a->keeper);
	a->retry = sd_event_source_disable_unref(a->retry);
	a->rest = sd_event_source_disable_unref(a->rest);
	a->again = sd_event_source_disable_unref(a->again);
	forget_connection(a);
	free(a->held);
	a->held = NULL;
	a->n_held = 0;
}
