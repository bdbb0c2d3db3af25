// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Follows several events until they are deleted, also when their rings are replaced (a resize) and
 * onto CPUs that come online. Each dispatch reads all events once; the records go through reorder.
 */
#include <string.h>
#include <sys/epoll.h>

#include "client/daemon/connection.h"
#include "client/public.h"
#include "client/rings/event.h"
#include "client/stream/reorder.h"
#include "proto/clock.h"

/* Between two reads of copies: the daemon has to make each copy. */
#define COPY_INTERVAL 500000000ULL
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

struct streamed {
	char ns[64], name[64];
	struct perfpersist_event *event; /* whose rings are followed */
	struct perfpersist_event *shown; /* whose records are returned */
	struct perfpersist_follow *follow;
	uint64_t id;
	uint32_t set;	 /* the set of rings that is followed */
	int wakeup;	 /* an eventfd, or -EBADF */
	bool is_told;	 /* the daemon tells what happens to the event */
	bool has_notice; /* and has just done so */
	bool is_paused;
	bool ended;
	/* The state that its rings announce; their remaining records are read first. */
	enum perfpersist_ring_state becomes; /* RETIRED or DELETED; else RUNNING */

	uint64_t looked;	    /* CLOCK_MONOTONIC, ns: all records up to then were found */
	uint64_t last;		    /* time of the newest record that was found */
	size_t held;		    /* bytes */
	uint64_t overwritten, told; /* in replaced rings; reported in all */
};

struct perfpersist_stream {
	struct perfpersist *p; /* NULL: no daemon reports changes */
	struct perfpersist_stream_options options;
	struct streamed **all;
	size_t n;
	int epoll;
	struct reorder reorder;
	struct perfpersist_event *spent; /* was shown before the item that was returned last */
	uint64_t until;			 /* all up to there was returned */
	uint64_t stop;			 /* later records are not wanted; 0: not known */
	bool is_told;			 /* the daemon tells about an event */
	bool has_notice;
	bool has_more; /* can be read at once */
	bool is_over, has_told_end;
};

/* Copies the thread's last error message to the connection. */
static int fail(struct perfpersist *p, int error)
{
	return p ? connection_fail(p, error) : error;
}

static int push(struct perfpersist_stream *s, size_t i, const struct perfpersist_stream_item *item,
		struct perfpersist_event *event)
{
	int r = reorder_push(&s->reorder, item, event);

	if (r < 0)
		return fail(s->p, r);
	s->all[i]->held += sizeof(struct held) + item->sample.record_size;
	return 0;
}

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
		return fail(p, client_fail(-EINVAL,
					   "cannot follow events with a struct "
					   "perfpersist_stream_options of %zu bytes: set its sz to "
					   "its size",
					   opts->sz));
	s = calloc(1, sizeof(*s));
	if (!s)
		return fail(p, client_fail(-ENOMEM, "cannot follow events: out of memory"));
	s->options = *opts;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0) {
		int error = -errno;

		free(s);
		return fail(p, client_fail(error, "cannot follow events: %s", strerror(-error)));
	}
	s->p = p;
	*ret = s;
	return 0;
}

static void close_rings(struct streamed *one)
{
	perfpersist_follow_free(one->follow);
	perfpersist_event_free(one->event);
	one->follow = NULL;
	one->event = NULL;
}

static void streamed_free(struct streamed *one)
{
	close_rings(one);
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
	return fail(s->p, client_fail(-errno, "cannot wait for events: %m"));
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
	s->is_told |= one->is_told;
	return s->options.wakeup ? r : 0;
}

/* Takes ownership of e, in place of the event that was followed before; on failure that one stays. */
static int start(struct streamed *one, struct perfpersist_event *e, size_t newest)
{
	struct perfpersist_follow *follow;
	int r = perfpersist_follow_new(e, newest, &follow);

	if (r < 0) {
		perfpersist_event_free(e);
		return r;
	}
	close_rings(one);
	one->event = e;
	one->follow = follow;
	one->id = e->base.id;
	one->set = e->base.set;
	return 0;
}

_public_ int perfpersist_stream_add(struct perfpersist_stream *s, struct perfpersist_event *e,
				    size_t newest)
{
	struct streamed *one = calloc(1, sizeof(*one));
	int r;

	if (!one || !GROW(s->all, s->n)) {
		free(one);
		return fail(s->p, client_fail(-ENOMEM, "cannot follow %s/%s: out of memory",
					      e->base.ns, e->base.name));
	}
	one->wakeup = -EBADF;
	memcpy(one->ns, e->base.ns, sizeof(one->ns));
	memcpy(one->name, e->base.name, sizeof(one->name));
	one->shown = client_event_ref(e);
	r = start(one, client_event_ref(e), newest);
	if (r >= 0)
		r = be_told(s, one);
	else
		fail(s->p, r);
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
	for (size_t i = 0; i < s->n; i++)
		s->all[i]->looked = 0; /* copies, too, once more */
}

/* ── Changes of an event ────────────────────────────────────────────────────────────────── */

static int tell(struct perfpersist_stream *s, size_t i, enum perfpersist_stream_kind kind,
		uint64_t time)
{
	struct perfpersist_stream_item item = { .kind = kind, .event = i, .time = time };

	return push(s, i, &item, NULL);
}

static int tell_overwritten(struct perfpersist_stream *s, size_t i, uint64_t time)
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
	r = push(s, i, &item, NULL);
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
	int r;

	if (!s->p)
		return -ENOENT;
	r = perfpersist_event_is_copy(one->event)
		    ? perfpersist_open_copy(s->p, one->ns, one->name, &e)
		    : perfpersist_open(s->p, one->ns, one->name, &e);
	if (r < 0)
		return r;
	r = reorder_reserve(&s->reorder); /* the notice must not fail once the rings are others */
	if (r < 0)
		perfpersist_event_free(e);
	else
		r = start(one, e, SIZE_MAX);
	if (r < 0)
		return fail(s->p, r);
	one->overwritten = one->told;
	count_begin(one);
	item.kind = one->id == id ? PERFPERSIST_STREAM_RESIZED : PERFPERSIST_STREAM_REPLACED;
	item.gap = one->set > set + 1;
	return push(s, i, &item, client_event_ref(e));
}

/* Called when rings that ended are read completely: goes over to new rings, or ends the event. */
static int go_over(struct perfpersist_stream *s, size_t i)
{
	struct streamed *one = s->all[i];
	uint64_t time = one->last ?: pp_clock_ns(CLOCK_MONOTONIC);
	int r = tell_overwritten(s, i, time);

	if (r >= 0)
		r = one->becomes == PERFPERSIST_RINGS_RETIRED ? open_again(s, i, time) : -ENOENT;
	if (r == -ENOENT) {
		r = tell(s, i, PERFPERSIST_STREAM_DELETED, time);
		one->ended = r >= 0;
	}
	if (r >= 0)
		one->becomes = PERFPERSIST_RINGS_RUNNING;
	return r;
}

static int look_at_copies(struct perfpersist_stream *s, struct streamed *one, uint64_t now)
{
	int r;

	if (now - one->looked < COPY_INTERVAL)
		return 0;
	r = perfpersist_event_refresh(one->event, s->p);
	if (r == -ESTALE)
		one->becomes = PERFPERSIST_RINGS_RETIRED;
	if (r == -ENOENT)
		one->becomes = PERFPERSIST_RINGS_DELETED;
	one->looked = now;
	return r == -ESTALE || r == -ENOENT || r == -EAGAIN ? 0 : r;
}

/* Checks whether the event was deleted, or has new or more rings. */
static int look_around(struct perfpersist_stream *s, size_t i, uint64_t now)
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
	r = tell(s, i, is_paused ? PERFPERSIST_STREAM_PAUSED : PERFPERSIST_STREAM_RESUMED, now);
	if (r >= 0)
		one->is_paused = is_paused;
	return r;
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
	return fail(s->p,
		    error == -EBADMSG
			    ? client_fail(error, "cannot go on reading %s/%s: a ring is damaged",
					  one->ns, one->name)
			    : client_fail(error, "cannot go on reading %s/%s: %s", one->ns,
					  one->name, strerror(-error)));
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
		r = push(s, i, &item, NULL);
		if (r < 0)
			return r;
	}
	return 1;
}

/* One round of one event. *until: no older record can come any more. */
static int go_round(struct perfpersist_stream *s, size_t i, uint64_t now, uint64_t *until)
{
	struct streamed *one = s->all[i];
	int r = one->becomes ? 0 : look_around(s, i, now);

	if (r >= 0)
		r = read_one(s, i, now);
	if (r == 0 && one->becomes) {
		r = go_over(s, i);
		if (r < 0 || one->ended)
			return r;
		r = read_one(s, i, now);
	}
	if (r < 0)
		return r;
	if (r && one->held > HELD_MOST) /* released even if records are under way */
		*until = MIN(*until, one->last + UNDER_WAY + 1);
	else
		*until = MIN(*until, r ? one->last : one->looked);
	s->has_more |= r;
	return tell_overwritten(s, i, now);
}

/* Goes on without the daemon: nobody reports changes or wakes any more. */
static int desert(struct perfpersist_stream *s, uint64_t now)
{
	int r = s->n ? tell(s, 0, PERFPERSIST_STREAM_UNATTENDED, now) : 0;

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
		if (read(one->wakeup, &count, sizeof(count)) > 0)
			one->looked = 0;
		else if (errno != EAGAIN)
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

_public_ int perfpersist_stream_dispatch(struct perfpersist_stream *s)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), until = now;
	uint64_t before = s->until;
	bool any = false;
	int r = hear(s, now);

	s->has_more = false;
	for (size_t i = 0; i < s->n && !s->is_over; i++) {
		struct streamed *one = s->all[i];
		int err = one->ended ? 0 : go_round(s, i, now, &until);

		if (err < 0)
			r = err;
		if (err == -EBADMSG) { /* a damaged ring: the other events go on */
			one->ended = true;
			stop_wakeup(s, one);
		} else if (err < 0) {
			until = 0;
		}
		any |= !one->ended;
	}
	if (r >= 0 && (!any || (s->stop && !s->has_more)))
		s->is_over = true;
	s->until = release_until(s, until);
	reorder_release(&s->reorder, s->until);
	/* Its share is full and nothing can be returned: another event must advance first. */
	if (!s->stop && s->until == before && s->reorder.next == s->reorder.ready)
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
		return fail(s->p,
			    client_fail(-EINVAL,
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
		uint64_t next = one->looked + COPY_INTERVAL;

		if (one->ended)
			continue;
		if (perfpersist_event_is_copy(one->event))
			delay = MIN(delay, next - MIN(next, now));
		else if (one->wakeup < 0)
			delay = MIN(delay, perfpersist_follow_delay(one->follow));
	}
	return delay;
}
