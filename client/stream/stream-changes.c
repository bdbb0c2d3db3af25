// SPDX-License-Identifier: LGPL-2.1-or-later
/* What becomes of an event that is followed: a pause, other rings, its end. */
#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/stream/stream-internal.h"
#include "proto/clock.h"

int stream_fail(struct perfpersist *p, int error)
{
	return p ? connection_fail(p, error) : error;
}

int stream_push(struct perfpersist_stream *s, size_t i, const struct perfpersist_stream_item *item,
		struct perfpersist_event *event)
{
	int r = reorder_push(&s->reorder, item, event);

	if (r < 0)
		return stream_fail(s->p, r);
	s->all[i]->held += sizeof(struct held) + item->sample.record_size;
	return 0;
}

void streamed_close(struct streamed *one)
{
	perfpersist_follow_free(one->follow);
	perfpersist_event_free(one->event);
	one->follow = NULL;
	one->event = NULL;
}

int streamed_start(struct streamed *one, struct perfpersist_event *e, size_t newest)
{
	struct perfpersist_follow *follow;
	int r = perfpersist_follow_new(e, newest, &follow);

	if (r < 0) {
		perfpersist_event_free(e);
		return r;
	}
	streamed_close(one);
	one->event = e;
	one->follow = follow;
	one->id = e->base.id;
	one->set = e->base.set;
	return 0;
}

int stream_tell(struct perfpersist_stream *s, size_t i, enum perfpersist_stream_kind kind,
		uint64_t time)
{
	struct perfpersist_stream_item item = { .kind = kind, .event = i, .time = time };

	return stream_push(s, i, &item, NULL);
}

int stream_tell_overwritten(struct perfpersist_stream *s, size_t i, uint64_t time)
{
	struct streamed *one = s->all[i];
	struct perfpersist_stream_item item = {
		.kind = PERFPERSIST_STREAM_OVERWRITTEN,
		.event = i,
		.time = time,
	};
	uint64_t overwritten = one->overwritten;
	int r;

	for (size_t k = 0; one->follow && k < perfpersist_event_rings(one->event); k++) {
		struct perfpersist_follow_stat stat = { .sz = sizeof(stat) };

		if (perfpersist_follow_stat(one->follow, k, &stat) >= 0)
			overwritten += stat.overwritten;
	}
	if (overwritten <= one->told)
		return 0;
	item.count = overwritten - one->told;
	r = stream_push(s, i, &item, NULL);
	if (r >= 0)
		one->told = overwritten;
	return r;
}

/* Counts records of new rings that were overwritten before the stream opened them. */
static void count_begin(struct streamed *one)
{
	for (size_t k = 0; k < perfpersist_event_rings(one->event); k++) {
		struct perfpersist_follow_stat stat = { .sz = sizeof(stat) };

		if (perfpersist_follow_stat(one->follow, k, &stat) >= 0)
			one->overwritten += stat.begin;
	}
}

/* ── Asking the daemon for rings ────────────────────────────────────────────────────────── */

static bool may_ask(const struct perfpersist_stream *s, const struct streamed *one, uint64_t now)
{
	return now - one->asked >= (s->stop ? LAST_COPY_INTERVAL : COPY_INTERVAL) &&
	       one->refused < LAST_COPY_ATTEMPTS && !streamed_is_complete(s, one);
}

/*
 * The daemon gave no rings. If it is gone, the event ends when the rings it has are read. Else it is
 * busy, or copies take more memory than it may use, and the next attempt may succeed: 0, until the
 * others have waited enough.
 */
static int be_refused(struct perfpersist_stream *s, size_t i, int error, uint64_t now)
{
	struct streamed *one = s->all[i];

	one->is_deserted = s->p->ended;
	if (one->is_deserted)
		return 0;
	one->waited_for = one->waited_for ?: now;
	if (s->stop ? ++one->refused < LAST_COPY_ATTEMPTS : now - one->waited_for < COPY_PATIENCE)
		return 0;
	one->waited_for = 0;
	one->given_up = now;
	return s->stop ? stream_tell(s, i, PERFPERSIST_STREAM_CUT, one->looked) : error;
}

static void be_given(struct streamed *one)
{
	one->refused = 0;
	one->waited_for = 0;
}

static void end_rings(struct streamed *one, enum perfpersist_ring_state state)
{
	one->becomes = state;
	one->unmarked = perfpersist_event_state(one->event) != state;
	one->asked = 0; /* new ones are opened at once */
}

/* Opens the event's new rings, from their beginning. 1: they were refused; -ENOENT: it was deleted
 * meanwhile. */
static int open_again(struct perfpersist_stream *s, size_t i, uint64_t time, uint64_t now)
{
	struct streamed *one = s->all[i];
	struct perfpersist_stream_item item = { .event = i, .time = time };
	struct perfpersist_event *e = NULL;
	uint64_t id = one->id;
	uint32_t set = one->set;
	bool was_copy = perfpersist_event_is_copy(one->event);
	int r;

	if (!s->p)
		return -ENOENT;
	if (!may_ask(s, one, now))
		return 1;
	one->asked = now;
	r = was_copy ? perfpersist_open_copy(s->p, one->ns, one->name, &e)
		     : perfpersist_open(s->p, one->ns, one->name, &e);
	if (r < 0 && r != -ENOENT)
		return be_refused(s, i, r, now) ?: 1;
	if (r < 0)
		return r;
	be_given(one);
	r = reorder_reserve(&s->reorder); /* the notice must not fail once the rings are others */
	if (r < 0)
		perfpersist_event_free(e);
	else
		r = streamed_start(one, e, SIZE_MAX);
	if (r < 0)
		return stream_fail(s->p, r);
	one->looked = now;
	one->overwritten = one->told;
	count_begin(one);
	item.kind = one->id == id ? PERFPERSIST_STREAM_RESIZED : PERFPERSIST_STREAM_REPLACED;
	/* What was recorded between the last copy and the end of these rings is in no copy. Into rings that were not marked
	 * something may have been written behind what was read. Another event of this name: the one before may have
	 * had more sets, which nobody says. */
	item.gap = was_copy || one->unmarked || one->id != id || one->set > set + 1;
	one->unmarked = false;
	return stream_push(s, i, &item, client_event_ref(e));
}

int stream_go_over(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	uint64_t time = one->last ?: pp_clock_ns(CLOCK_MONOTONIC);
	int r = stream_tell_overwritten(s, i, time);

	if (r >= 0)
		r = one->becomes == PERFPERSIST_RINGS_RETIRED ? open_again(s, i, time, now)
							      : -ENOENT;
	if (r == -ENOENT) {
		r = stream_tell(s, i, PERFPERSIST_STREAM_DELETED, time);
		one->ended = r >= 0;
	}
	if (r == 0)
		one->becomes = PERFPERSIST_RINGS_RUNNING;
	return MIN(r, 0);
}

/* 1: there are new copies. */
static int look_at_copies(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	int r;

	if (!may_ask(s, one, now))
		return 0;
	one->asked = now;
	r = perfpersist_event_refresh(one->event, s->p);
	if (r >= 0) {
		be_given(one);
		return 1;
	}
	if (r != -ESTALE && r != -ENOENT)
		return be_refused(s, i, r, now);
	end_rings(one, r == -ESTALE ? PERFPERSIST_RINGS_RETIRED : PERFPERSIST_RINGS_DELETED);
	return 0;
}

/*
 * Asks for rings of new CPUs, and whether there is a newer set. If that fails because the event was
 * deleted, its rings say so at the next read. 1: there is a newer set.
 */
static int follow_notice(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	int r;

	if (!one->has_notice || !s->is_told || now - one->asked < COPY_INTERVAL)
		return 0;
	r = perfpersist_event_refresh(one->event, s->p);
	if (r >= 0)
		one->unmarked = false;
	if (r == -ENOENT && one->unmarked) /* the mark will not come */
		end_rings(one, PERFPERSIST_RINGS_DELETED);
	one->has_notice = r < 0 && r != -ENOENT && r != -ESTALE;
	if (one->has_notice || r == -ESTALE)
		one->asked = now;
	return r == -ESTALE;
}

int stream_look_around(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	enum perfpersist_ring_state state;
	bool is_paused;
	int r = perfpersist_event_is_copy(one->event) && s->p ? look_at_copies(s, i, now) : 1;

	if (r < 0)
		return r;
	state = perfpersist_event_state(one->event);
	if (state == PERFPERSIST_RINGS_RETIRED || state == PERFPERSIST_RINGS_DELETED) {
		end_rings(one, state);
		return 0;
	}
	if (follow_notice(s, i, now) > 0) {
		/* They will be marked when nothing writes into them any more; unless that failed. */
		if (one->unmarked || s->stop)
			end_rings(one, PERFPERSIST_RINGS_RETIRED);
		else
			one->has_notice = one->unmarked = true;
		return 0;
	}
	if (r > 0)
		one->looked = now;
	is_paused = state == PERFPERSIST_RINGS_PAUSED;
	if (is_paused == one->is_paused)
		return 0;
	r = stream_tell(s, i, is_paused ? PERFPERSIST_STREAM_PAUSED : PERFPERSIST_STREAM_RESUMED,
			now);
	if (r >= 0)
		one->is_paused = is_paused;
	return r;
}
