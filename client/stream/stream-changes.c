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

/* Opens the event's new rings, from their beginning. -ENOENT: it was deleted meanwhile. */
static int open_again(struct perfpersist_stream *s, size_t i, uint64_t time)
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
	r = was_copy ? perfpersist_open_copy(s->p, one->ns, one->name, &e)
		     : perfpersist_open(s->p, one->ns, one->name, &e);
	if (r < 0)
		return r;
	r = reorder_reserve(&s->reorder); /* the notice must not fail once the rings are others */
	if (r < 0)
		perfpersist_event_free(e);
	else
		r = streamed_start(one, e, SIZE_MAX);
	if (r < 0)
		return stream_fail(s->p, r);
	one->overwritten = one->told;
	count_begin(one);
	item.kind = one->id == id ? PERFPERSIST_STREAM_RESIZED : PERFPERSIST_STREAM_REPLACED;
	/* What was recorded between the last copy and the end of these rings is in no copy. */
	item.gap = was_copy || one->set > set + 1;
	return stream_push(s, i, &item, client_event_ref(e));
}

int stream_go_over(struct perfpersist_stream *s, size_t i)
{
	struct streamed *one = s->all[i];
	uint64_t time = one->last ?: pp_clock_ns(CLOCK_MONOTONIC);
	int r = stream_tell_overwritten(s, i, time);

	if (r >= 0)
		r = one->becomes == PERFPERSIST_RINGS_RETIRED ? open_again(s, i, time) : -ENOENT;
	if (r == -ENOENT) {
		r = stream_tell(s, i, PERFPERSIST_STREAM_DELETED, time);
		one->ended = r >= 0;
	}
	if (r >= 0)
		one->becomes = PERFPERSIST_RINGS_RUNNING;
	return r;
}

static int look_at_copies(struct perfpersist_stream *s, struct streamed *one, uint64_t now)
{
	int r;

	if (now - one->asked < (s->stop ? LAST_COPY_INTERVAL : COPY_INTERVAL) ||
	    one->refused >= LAST_COPY_ATTEMPTS)
		return 0;
	one->asked = now;
	r = perfpersist_event_refresh(one->event, s->p);
	if (r == -ESTALE)
		one->becomes = PERFPERSIST_RINGS_RETIRED;
	if (r == -ENOENT)
		one->becomes = PERFPERSIST_RINGS_DELETED;
	if (r == -EAGAIN && s->stop) {
		/* What it has recorded since is yet to be found; the others wait for so long. */
		if (++one->refused >= LAST_COPY_ATTEMPTS)
			one->looked = now;
		return 0;
	}
	if (r == -EAGAIN && now - one->looked < COPY_PATIENCE)
		return 0;
	one->looked = now;
	one->refused = 0;
	return r == -ESTALE || r == -ENOENT ? 0 : r;
}

int stream_look_around(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	enum perfpersist_ring_state state;
	bool is_paused;
	int r;

	if (perfpersist_event_is_copy(one->event) && s->p) {
		r = look_at_copies(s, one, now);
		if (r < 0)
			return r;
	} else {
		one->looked = now;
	}
	state = perfpersist_event_state(one->event);
	if (state == PERFPERSIST_RINGS_RETIRED || state == PERFPERSIST_RINGS_DELETED) {
		one->becomes = state;
		return 0;
	}
	/* If the refresh fails because the event was deleted or replaced, its rings say so at the
	 * next read; on -EAGAIN the stream tries again. */
	if (one->has_notice && s->is_told)
		one->has_notice = perfpersist_event_refresh(one->event, s->p) == -EAGAIN;
	is_paused = state == PERFPERSIST_RINGS_PAUSED;
	if (is_paused == one->is_paused)
		return 0;
	r = stream_tell(s, i, is_paused ? PERFPERSIST_STREAM_PAUSED : PERFPERSIST_STREAM_RESUMED,
			now);
	if (r >= 0)
		one->is_paused = is_paused;
	return r;
}
