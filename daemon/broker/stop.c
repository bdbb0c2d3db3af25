// SPDX-License-Identifier: LGPL-2.1-or-later
/* Deletes one event after the other, and watches for progress. */
#include "daemon/broker/stop.h"

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define PATIENCE_USEC (10 * 1000000ULL) /* without a deleted event: gives up */
#define TELL_USEC 1000000ULL

/* ── how it ends ────────────────────────────────────────────────────────────────────────── */

/* Without adoptions that were begun and not ended: they record nothing, and go with their peers. */
static size_t count_left(const struct stop *s)
{
	const struct registry *r = &s->lifecycle->registry;
	size_t n = 0;

	for (size_t i = 0; i < r->n_events; i++)
		n += !lifecycle_is_waiting(s->lifecycle, r->by_name[i]);
	return n;
}

static void tell_left(const struct stop *s, size_t left)
{
	const struct registry *r = &s->lifecycle->registry;
	size_t used = 0, named = 0;
	char names[512] = "";

	for (size_t i = 0; i < r->n_events; i++) {
		const struct pp_spec *spec = &r->by_name[i]->truth.spec;
		int n;

		if (lifecycle_is_waiting(s->lifecycle, r->by_name[i]))
			continue;
		n = snprintf(names + used, sizeof(names) - used, "%s%s/%s", named ? ", " : "",
			     spec->ns, spec->name);
		if (n < 0 || used + n >= sizeof(names)) {
			names[used] = '\0';
			break;
		}
		used += n;
		named++;
	}
	log_warning("%zu event%s could not be ended, because the engine did not do it, and %s on "
		    "recording: %s%s.",
		    left, left == 1 ? "" : "s", left == 1 ? "goes" : "go", names,
		    named < left ? ", and others" : "");
}

static void end(struct stop *s)
{
	size_t left = count_left(s);

	s->timer = sd_event_source_disable_unref(s->timer);
	if (!s->lifecycle->synced)
		log_warning("No event could be ended, because there is no engine; all events go on "
			    "recording.");
	else if (left > 0)
		tell_left(s, left);
	else
		log_info("Ended all events: %zu.", s->deleted);
	s->ended(s->userdata);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
	end(userdata);
	return 0;
}

/* Extends systemd's timeout. */
static void get_on(struct stop *s)
{
	uint64_t now = 0;

	timer_start(s->timer, PATIENCE_USEC);
	sd_event_now(sd_event_source_get_event(s->timer), CLOCK_MONOTONIC, &now);
	if (s->told && now - s->told < TELL_USEC)
		return;
	s->told = now;
	sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64 "\nSTATUS=Ending events, %zu left",
		   (uint64_t)(PATIENCE_USEC + 2 * TELL_USEC), count_left(s));
}

/* ── one after the other ────────────────────────────────────────────────────────────────── */

static void on_deleted(struct waiter *waiter, const struct outcome *outcome)
{
	struct stop *s = (struct stop *)waiter;
	const struct pp_spec *spec = &s->about->truth.spec;

	if (outcome->error)
		log_warning("Cannot end %s/%s: %s", spec->ns, spec->name, outcome->sentence);
	else
		s->deleted++;
	s->about = NULL;
}

static struct event *find_below(const struct stop *s)
{
	const struct registry *r = &s->lifecycle->registry;

	for (size_t i = registry_after(r, s->before - 1); i > 0; i--) {
		struct event *e = r->by_id[i - 1];

		if (e->state == PP_EVENT_RUNNING || e->state == PP_EVENT_PAUSED)
			return e;
	}
	return NULL;
}

/* Waits for clients' orders first, and then deletes their events, too. Not for who has begun an adoption, and
 * may never end it. */
static bool is_awaited(const struct stop *s)
{
	const struct registry *r = &s->lifecycle->registry;

	for (size_t i = 0; i < r->n_events; i++)
		if (r->by_name[i]->state != PP_EVENT_RUNNING &&
		    r->by_name[i]->state != PP_EVENT_PAUSED &&
		    !lifecycle_is_waiting(s->lifecycle, r->by_name[i]))
			return true;
	return false;
}

static struct event *find_next(struct stop *s)
{
	struct event *e = find_below(s);

	if (!e && s->again) {
		s->again = false;
		s->before = UINT64_MAX;
		e = find_below(s);
	}
	return e;
}

static int order(struct stop *s, struct event *e)
{
	char sentence[PP_SENTENCE_SIZE];
	int r;

	s->about = e;
	s->before = e->truth.id;
	s->waiter = (struct waiter){ .done = on_deleted };
	r = lifecycle_delete(s->lifecycle, e, &s->waiter);
	if (r >= 0)
		return 0;
	s->about = NULL;
	lifecycle_explain(s->lifecycle, r, e->truth.spec.ns, e->truth.spec.name, sentence,
			  sizeof(sentence));
	log_warning("Cannot end %s/%s: %s", e->truth.spec.ns, e->truth.spec.name, sentence);
	return r;
}

static void on_released(struct waiter *waiter, const struct outcome *outcome)
{
	struct stop *s = (struct stop *)waiter;

	if (outcome->error)
		log_warning("Cannot release what a trigger had frozen: %s", outcome->sentence);
	s->tape = 0;
}

/* Whether there was one to release. */
static bool release_next(struct stop *s)
{
	const struct tapes *tapes = &s->lifecycle->tapes;
	size_t i = tapes_after(tapes, s->released);

	if (i == tapes->n)
		return false;
	s->tape = s->released = tapes->all[i]->event.truth.id;
	s->waiter = (struct waiter){ .done = on_released };
	if (lifecycle_release(s->lifecycle, s->tape, &s->waiter) < 0)
		s->tape = 0;
	return true;
}

void stop_continue(struct stop *s)
{
	struct event *e;
	int r = 0;

	if (!s->timer || s->stepping || s->about || s->tape || !s->lifecycle->synced)
		return;
	s->stepping = true;
	/* Without an engine each would fail the same way. */
	while (r != -EAGAIN && !s->about && (e = find_next(s)))
		r = order(s, e);
	while (r != -EAGAIN && !s->about && !s->tape && release_next(s))
		;
	s->stepping = false;
	s->again |= !s->about && is_awaited(s);
	if (s->about || s->tape)
		get_on(s);
	else if (r == -EAGAIN || !s->again)
		end(s);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int stop_begin(struct stop *s, sd_event *loop)
{
	int r = timer_add(loop, &s->timer, on_timer, s);

	if (r < 0)
		return r;
	s->begun = true;
	s->before = UINT64_MAX;
	s->lifecycle->closed = true;
	get_on(s);
	stop_continue(s);
	return 0;
}

void stop_done(struct stop *s)
{
	s->timer = sd_event_source_disable_unref(s->timer);
}
