// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Follows several events until they are deleted, also when their rings are replaced (a resize) and
 * onto CPUs that come online. Each dispatch reads all events once; the records go through reorder.
 */
#include <string.h>
#include <sys/epoll.h>

#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/stream/stream-internal.h"
#include "proto/clock.h"

/* A stream with wakeups still reads this often, in case nobody is left to wake it. */
#define WOKEN_INTERVAL 10000000000ULL
/* Approximate limit on the records held for all events together. */
#define HELD_MAX (64U << 20)
/* Limit for one event, even if the times of its records do not advance. */
#define HELD_MOST (2 * HELD_MAX)
/* A record whose time is further ahead than this gets the time at which it was read. */
#define AHEAD_MAX 1000000000ULL
/* A record may reach its ring this long after its time: an interrupt or two. */
#define UNDER_WAY 5000000ULL

/* ── Beginning and end ──────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_stream_new(struct perfpersist *p,
				    const struct perfpersist_stream_options *opts,
				    struct perfpersist_stream **ret)
{
	static const struct perfpersist_stream_options defaults = { .sz = sizeof(defaults) };
	struct perfpersist_stream *s;

	if (!opts)
		opts = &defaults;
	if (!SZ_IS_VALID(opts))
		return stream_fail(
			p, client_fail(-EINVAL,
				       "cannot follow events with a struct "
				       "perfpersist_stream_options of %zu bytes: set its sz to "
				       "its size",
				       opts->sz));
	s = calloc(1, sizeof(*s));
	if (!s)
		return stream_fail(p, client_fail(-ENOMEM, "cannot follow events: out of memory"));
	s->options = *opts;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0) {
		int error = -errno;

		free(s);
		return stream_fail(
			p, client_fail(error, "cannot follow events: %s", strerror(-error)));
	}
	s->p = p;
	*ret = s;
	return 0;
}

static void streamed_free(struct streamed *one)
{
	streamed_close(one);
	perfpersist_event_free(one->shown);
	close_fd(one->wakeup);
	free(one);
}

_public_ void perfpersist_stream_free(struct perfpersist_stream *s)
{
	if (!s)
		return;
	perfpersist_free(s->p); /* before the events that its notices use */
	for (size_t i = 0; i < s->n; i++)
		streamed_free(s->all[i]);
	perfpersist_event_free(s->spent);
	reorder_done(&s->reorder);
	close_fd(s->epoll);
	free(s->all);
	free(s);
}

static int listen_to(const struct perfpersist_stream *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) >= 0 || errno == EEXIST)
		return 0;
	return stream_fail(s->p, client_fail(-errno, "cannot wait for events: %m"));
}

/* The daemon has the eventfd, too: it would go on to wake after we have closed it. */
static void stop_wakeup(const struct perfpersist_stream *s, struct streamed *one)
{
	if (one->wakeup >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, one->wakeup, NULL);
	one->wakeup = close_fd(one->wakeup);
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *notice,
		      void *userdata)
{
	struct perfpersist_stream *s = userdata;

	s->has_notice = true;
	for (size_t i = 0; i < s->n; i++)
		s->all[i]->has_notice |= notice->kind == PERFPERSIST_NOTICE_LOST ||
					 (notice->kind == PERFPERSIST_NOTICE_CHANGED &&
					  !strcmp(notice->info->ns, s->all[i]->ns) &&
					  !strcmp(notice->info->name, s->all[i]->name));
}

static bool is_told_of(const struct perfpersist_stream *s, const char *ns)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i]->is_told && !strcmp(s->all[i]->ns, ns))
			return true;
	return false;
}

/* Watches the event's namespace, because notices, for example of a deletion, wake the stream, too.
 * Without notices it goes on with the rings it has; copies report changes when they are renewed. */
static int be_told(struct perfpersist_stream *s, struct streamed *one)
{
	int r = 0;

	if (!s->p)
		return 0;
	if (s->options.wakeup)
		r = perfpersist_wakeup(s->p, one->ns, one->name, &one->wakeup);
	if (r >= 0 && one->wakeup >= 0)
		r = listen_to(s, one->wakeup);
	if (r < 0 || perfpersist_event_is_copy(one->event))
		return r;
	if (!is_told_of(s, one->ns))
		r = perfpersist_watch(s->p, one->ns, on_notice, s);
	if (r >= 0)
		r = listen_to(s, perfpersist_fd(s->p));
	one->is_told = r >= 0;
	one->has_notice = one->is_told; /* a CPU may have come before we were told */
	s->is_told |= one->is_told;
	return s->options.wakeup ? r : 0;
}

_public_ int perfpersist_stream_add(struct perfpersist_stream *s, struct perfpersist_event *e,
				    size_t newest)
{
	struct streamed *one = calloc(1, sizeof(*one));
	int r;

	if (!one || !GROW(s->all, s->n)) {
		free(one);
		return stream_fail(s->p, client_fail(-ENOMEM, "cannot follow %s/%s: out of memory",
						     e->base.ns, e->base.name));
	}
	one->wakeup = -EBADF;
	memcpy(one->ns, e->base.ns, sizeof(one->ns));
	memcpy(one->name, e->base.name, sizeof(one->name));
	one->shown = client_event_ref(e);
	r = streamed_start(one, client_event_ref(e), newest);
	if (r >= 0)
		r = be_told(s, one);
	else
		stream_fail(s->p, r);
	if (r < 0) {
		stop_wakeup(s, one);
		streamed_free(one);
		return r;
	}
	s->all[s->n] = one;
	return (int)s->n++;
}

_public_ struct perfpersist_event *perfpersist_stream_event(struct perfpersist_stream *s,
							    size_t event)
{
	return event < s->n ? s->all[event]->shown : NULL;
}

_public_ void perfpersist_stream_stop(struct perfpersist_stream *s)
{
	s->stop = pp_clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < s->n; i++) {
		s->all[i]->asked = 0;			     /* copies, too, once more */
		s->all[i]->has_notice |= s->all[i]->is_told; /* it may be on its way */
	}
}

/* ── Reading ────────────────────────────────────────────────────────────────────────────── */

/*
 * No event may hold more than its share, because others may be far behind: the stream returns its
 * records only up to where they are. Records under way are held in any case, so that each release
 * gets closer to now.
 */
static bool is_full(const struct perfpersist_stream *s, const struct streamed *one)
{
	return one->held > HELD_MAX / s->n &&
	       (s->options.at_once || one->last > s->until + 2 * UNDER_WAY ||
		one->held > HELD_MOST);
}

static int cannot_go_on(const struct perfpersist_stream *s, const struct streamed *one, int error)
{
	const char *why = error == -EBADMSG	 ? "a ring is damaged"
			  : error == -ECONNRESET ? "the connection to perfpersistd has ended"
						 : strerror(-error);

	return stream_fail(s->p, client_fail(error, "cannot go on reading %s/%s: %s", one->ns,
					     one->name, why));
}

/* Reads the available records. 1: there is more to read at once. */
static int read_one(struct perfpersist_stream *s, size_t i, uint64_t now)
{
	struct streamed *one = s->all[i];
	struct perfpersist_stream_item item = { .kind = PERFPERSIST_STREAM_RECORD, .event = i };
	int r = 0;

	while (!is_full(s, one)) {
		r = perfpersist_follow_next(one->follow, &item.sample);
		if (r < 0)
			return cannot_go_on(s, one, r);
		/* A recorder at full speed is never read to its end. */
		if (r == 0 || (s->stop && item.sample.time > s->stop))
			return 0;
		item.time = item.sample.time > now + AHEAD_MAX ? now : item.sample.time;
		one->last = MAX(one->last, item.time);
		r = stream_push(s, i, &item, NULL);
		if (r < 0)
			return r;
	}
	return 1;
}

/* What is found missing is later than what was read or returned, and earlier than what comes. 0: nothing was. */
static uint64_t end_of_read(const struct perfpersist_stream *s, const struct streamed *one)
{
	return MAX(MAX(one->found, one->last), s->options.at_once ? 0 : s->until);
}

/* One round of one event. *until: no older record can come any more. */
static int go_round(struct perfpersist_stream *s, size_t i, uint64_t now, uint64_t *until)
{
	struct streamed *one = s->all[i];
	uint64_t looked, before = end_of_read(s, one) ?: now;
	int r = one->becomes || one->is_deserted ? 0 : stream_look_around(s, i, now);

	if (r >= 0)
		r = read_one(s, i, now);
	if (r == 0 && one->becomes && !one->is_deserted) {
		r = stream_tell_overwritten(s, i, before);
		if (r >= 0)
			r = stream_go_over(s, i, now);
		if (r < 0 || one->ended)
			return r;
		before = end_of_read(s, one) ?: pp_clock_ns(CLOCK_MONOTONIC); /* the new rings' */
		r = read_one(s, i, now);
	}
	if (r < 0)
		return r;
	if (r == 0)
		one->found = one->looked;
	if (r == 0 && one->is_deserted)
		return stream_tell_overwritten(s, i, before) ?: cannot_go_on(s, one, -ECONNRESET);
	looked = streamed_is_complete(s, one) ? now : MAX(one->looked, one->given_up);
	if (r && one->held > HELD_MOST) /* released even if records are under way */
		*until = MIN(*until, one->last + UNDER_WAY + 1);
	else
		*until = MIN(*until, r ? one->last : looked);
	s->has_more |= r;
	return stream_tell_overwritten(s, i, before);
}

/* Goes on without the daemon: nobody reports changes or wakes any more. */
static int desert(struct perfpersist_stream *s, uint64_t now)
{
	int r = s->n ? stream_tell(s, 0, PERFPERSIST_STREAM_UNATTENDED, now) : 0;

	if (r < 0)
		return r; /* the next dispatch finds the connection broken again */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, perfpersist_fd(s->p), NULL);
	s->is_told = false;
	for (size_t i = 0; i < s->n; i++)
		stop_wakeup(s, s->all[i]);
	return 0;
}

/* Takes notices and wakeups before it reads rings, so that none is lost in between. */
static int hear(struct perfpersist_stream *s, uint64_t now)
{
	uint64_t count;
	int r = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct streamed *one = s->all[i];

		if (one->wakeup < 0)
			continue;
		if (read(one->wakeup, &count, sizeof(count)) > 0) {
			if (perfpersist_event_is_copy(one->event)) /* there is more to copy */
				one->asked = 0;
		} else if (errno != EAGAIN)
			stop_wakeup(s, one);
	}
	if (s->is_told && perfpersist_dispatch(s->p) < 0)
		r = desert(s, now);
	s->has_notice = false;
	return r;
}

/* The time up to which all items may be returned. */
static uint64_t release_until(const struct perfpersist_stream *s, uint64_t until)
{
	if (s->options.at_once || s->is_over)
		return UINT64_MAX;
	return MAX(s->until, until - MIN(until, UNDER_WAY));
}

/* Whether the last copy of an event was refused; that is an error when all attempts for all events
 * were made, so that each event without its last copy is cut. */
static int lacks_last_copy(struct perfpersist_stream *s)
{
	const struct streamed *without = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct streamed *one = s->all[i];

		if (one->ended || !one->refused)
			continue;
		if (one->refused < LAST_COPY_ATTEMPTS)
			return 1;
		without = without ?: one;
	}
	if (!without)
		return 0;
	return stream_fail(s->p, client_fail(-EAGAIN,
					     "the last records of %s/%s could not be copied: "
					     "perfpersistd is busy, or has no room for copies",
					     without->ns, without->name));
}

/* Ends an event of which nothing more can be read. */
static int cut(struct perfpersist_stream *s, size_t i)
{
	struct streamed *one = s->all[i];
	int r = stream_tell_overwritten(s, i, one->found);

	one->ended = true;
	stop_wakeup(s, one);
	return r < 0 ? r : stream_tell(s, i, PERFPERSIST_STREAM_CUT, one->found);
}

_public_ int perfpersist_stream_dispatch(struct perfpersist_stream *s)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), until = now;
	uint64_t before = s->until;
	int lacks = 0, r = hear(s, now);
	bool any = false, failed = r < 0, is_stuck;

	s->has_more = false;
	for (size_t i = 0; i < s->n && !s->is_over; i++) {
		struct streamed *one = s->all[i];
		int err = one->ended ? 0 : go_round(s, i, now, &until);

		if (err < 0)
			r = err;
		if (err == -EBADMSG || err == -ECONNRESET) /* the others go on */
			err = cut(s, i);
		if (err < 0)
			until = 0;
		failed |= err < 0;
		any |= !one->ended;
	}
	/* The next dispatch may succeed. After a stop that is the end: what was found is returned. */
	s->is_over |= failed && s->stop;
	if (r >= 0 && (!any || s->stop) && !s->is_over) {
		lacks = lacks_last_copy(s);
		s->has_more |= lacks > 0;
		s->is_over = !s->has_more;
		r = s->is_over ? lacks : 0;
	}
	s->until = release_until(s, until);
	reorder_release(&s->reorder, s->until);
	/* A share is full and nothing can be returned: another event must advance first. */
	is_stuck = s->until == before && s->reorder.next == s->reorder.ready;
	if (is_stuck && lacks > 0) /* who calls goes on at once */
		nanosleep(&(struct timespec){ .tv_nsec = LAST_COPY_INTERVAL }, NULL);
	else if (is_stuck && !s->stop)
		s->has_more = false;
	return r < 0 ? r : s->has_more;
}

_public_ int perfpersist_stream_next(struct perfpersist_stream *s,
				     struct perfpersist_stream_item *ret)
{
	struct perfpersist_event *event;
	struct streamed *one;
	size_t sz = ret->sz;

	if (!SZ_IS_VALID(ret))
		return stream_fail(
			s->p, client_fail(-EINVAL,
					  "cannot fill in a struct perfpersist_stream_item of %zu "
					  "bytes: set its sz to its size",
					  sz));
	if (!reorder_pop(&s->reorder, ret, &event)) {
		if (!s->is_over || s->has_told_end)
			return 0;
		s->has_told_end = true;
		*ret = (struct perfpersist_stream_item){ .sz = sz, .kind = PERFPERSIST_STREAM_END };
		return 1;
	}
	ret->sz = sz;
	one = s->all[ret->event];
	one->held -= sizeof(struct held) + ret->sample.record_size;
	if (event) {
		perfpersist_event_free(s->spent);
		s->spent = one->shown;
		one->shown = event;
	}
	return 1;
}

/* ── Waiting ────────────────────────────────────────────────────────────────────────────── */

_public_ int perfpersist_stream_fd(struct perfpersist_stream *s)
{
	return s->epoll;
}

_public_ uint64_t perfpersist_stream_delay(struct perfpersist_stream *s)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), delay = WOKEN_INTERVAL;

	if (s->has_more || s->has_notice)
		return 0;
	if (s->reorder.n > s->reorder.next)
		delay = UNDER_WAY;
	for (size_t i = 0; i < s->n; i++) {
		const struct streamed *one = s->all[i];
		uint64_t next = one->asked + COPY_INTERVAL;

		if (one->ended)
			continue;
		/* New rings are asked for when the old ones are read, and then again and again. */
		if (one->becomes ? one->asked > 0 : perfpersist_event_is_copy(one->event))
			delay = MIN(delay, next - MIN(next, now));
		else if (one->wakeup < 0)
			delay = MIN(delay, perfpersist_follow_delay(one->follow));
		if (one->unmarked) /* whether there are any is asked again, too */
			delay = MIN(delay, next - MIN(next, now));
	}
	return delay;
}
