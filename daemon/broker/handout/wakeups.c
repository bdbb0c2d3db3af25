// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the eventfds, by event. Must not know names, rights or rings. */
#include "daemon/broker/handout/wakeups.h"

#include <assert.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "daemon/broker/edge/fair-queue.h"
#include "daemon/broker/handout/ringbuf.h"
#include "daemon/broker/handout/signaller.h"
#include "daemon/broker/handout/tree.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "daemon/wakeup.h"
#include "proto/macro.h"

/* After a wakeup a ring is silent for an interval. Records of that time are announced after one
 * interval, and certainly after two. */
#define AFTER_USEC (2 * PP_WAKEUP_INTERVAL / 1000)

/* How often the ring is read: it has the wakeups of all events, also of those that nobody waits for, and whoever
 * creates many of them decides how many. */
#define READS_INTERVAL_USEC (PP_WAKEUP_INTERVAL / 1000)
#define READS_MAX 4

struct waker {
	struct peer_guest guest; /* first: a guest of ours is a waker */
	struct target *target;
	struct waker *next, **link; /* of the target */
	int fd;
	bool late; /* to be woken when its user is no longer silenced */
};

/* An event with waiting readers. */
struct target {
	uint64_t id;
	struct wakeups *wakeups;
	struct waker *first;
	uint64_t due; /* time of the second wakeup; 0: none */
	struct target *next_due, *previous_due;
};

struct wakeups {
	sd_event *loop;
	char registry[256];
	struct ringbuf ring;
	struct signaller signaller;
	struct peer *payer; /* user of the batch in the signaller; a batch has one user */
	bool late;	    /* some waker is late */
	int fd;		    /* the ring buffer */
	sd_event_source *io, *timer;
	struct target **targets; /* sorted by id */
	size_t n, room;
	struct target *first_due, *last_due; /* in order of time */
	size_t n_wakers, max;
};

/* ── targets ────────────────────────────────────────────────────────────────────────────── */

/* Index of the first target whose id is not below this one. */
static size_t place_of(const struct wakeups *w, uint64_t id)
{
	size_t low = 0, high = w->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (w->targets[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct target *find(const struct wakeups *w, uint64_t id)
{
	size_t i = place_of(w, id);

	return i < w->n && w->targets[i]->id == id ? w->targets[i] : NULL;
}

static int add_target(struct wakeups *w, uint64_t id, struct target **ret)
{
	size_t i = place_of(w, id);
	struct target *t;

	if (w->n == w->room) {
		size_t room = w->room ? w->room * 2 : 16;
		struct target **p = reallocarray(w->targets, room, sizeof(struct target *));

		if (!p)
			return -ENOMEM;
		w->targets = p;
		w->room = room;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->id = id;
	t->wakeups = w;
	memmove(&w->targets[i + 1], &w->targets[i], (w->n - i) * sizeof(struct target *));
	w->targets[i] = t;
	w->n++;
	*ret = t;
	return 0;
}

/* ── once more, later ───────────────────────────────────────────────────────────────────── */

static void set_timer(struct wakeups *w)
{
	if (!w->first_due) {
		sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(w->timer, w->first_due->due);
	sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
}

static void not_due(struct target *t)
{
	struct wakeups *w = t->wakeups;

	if (!t->due)
		return;
	*(t->previous_due ? &t->previous_due->next_due : &w->first_due) = t->next_due;
	*(t->next_due ? &t->next_due->previous_due : &w->last_due) = t->previous_due;
	t->next_due = t->previous_due = NULL;
	t->due = 0;
}

/* All have the same delay, so the newest goes to the end. */
static void due_later(struct target *t)
{
	struct wakeups *w = t->wakeups;
	uint64_t now;

	not_due(t);
	if (sd_event_now(w->loop, CLOCK_MONOTONIC, &now) < 0)
		return;
	t->due = now + AFTER_USEC;
	t->previous_due = w->last_due;
	*(w->last_due ? &w->last_due->next_due : &w->first_due) = t;
	w->last_due = t;
}

/* ── waking ─────────────────────────────────────────────────────────────────────────────── */

/* Signalling an eventfd wakes its pollers and epoll sets in our time: its user pays. */
static void flush(struct wakeups *w)
{
	uint64_t began;

	if (!w->payer)
		return;
	began = peer_clock(w->payer);
	signaller_flush(&w->signaller);
	peer_spend(w->payer, began);
	w->payer = NULL;
}

static void signal_one(struct wakeups *w, struct waker *waker)
{
	struct peer *peer = waker->guest.peer;

	if (w->payer && peer_credentials(w->payer)->uid != peer_credentials(peer)->uid)
		flush(w);
	waker->late = peer_is_silenced(peer);
	w->late |= waker->late;
	if (waker->late)
		return;
	w->payer = peer;
	if (signaller_add(&w->signaller, waker->fd))
		flush(w);
}

static void signal_all(struct target *t)
{
	for (struct waker *i = t->first; i; i = i->next)
		signal_one(t->wakeups, i);
}

void wakeups_relieved(struct wakeups *w)
{
	if (!w->late)
		return;
	w->late = false;
	for (size_t i = 0; i < w->n; i++)
		for (struct waker *k = w->targets[i]->first; k; k = k->next)
			if (k->late)
				signal_one(w, k);
	flush(w);
}

static void wake(struct wakeups *w, uint64_t event_id)
{
	struct target *t = find(w, event_id);

	if (!t)
		return;
	signal_all(t);
	due_later(t);
}

void wakeups_wake(struct wakeups *w, uint64_t event_id)
{
	wake(w, event_id);
	flush(w);
	set_timer(w);
}

static void on_record(void *userdata, const void *record, size_t size)
{
	struct pp_wakeup wakeup;

	if (size != sizeof(wakeup))
		return;
	memcpy(&wakeup, record, sizeof(wakeup));
	wake(userdata, wakeup.event_id);
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	struct wakeups *w = userdata;
	int n = ringbuf_consume(&w->ring, on_record, w);

	/* Where it was full, or nearly so, other messages found no room. */
	if (n >= (int)(w->ring.size / (BPF_RINGBUF_HDR_SZ + sizeof(struct pp_wakeup))) - 1)
		for (size_t i = 0; i < w->n; i++)
			wake(w, w->targets[i]->id);
	if (n < 0)
		log_error("The ring buffer of wakeups is malformed; its content was skipped, and "
			  "some readers may see records late.");
	flush(w);
	set_timer(w);
	return 0;
}

static int on_timer(sd_event_source *s _unused_, uint64_t usec, void *userdata)
{
	struct wakeups *w = userdata;
	uint64_t now;

	if (sd_event_now(w->loop, CLOCK_MONOTONIC, &now) < 0)
		now = usec;
	while (w->first_due && w->first_due->due <= now) {
		struct target *t = w->first_due;

		not_due(t);
		signal_all(t);
	}
	flush(w);
	set_timer(w);
	return 0;
}

/* ── the ring buffer ────────────────────────────────────────────────────────────────────── */

/* The engine creates it with the first event that wakes readers. */
static int open_ring(struct wakeups *w)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (w->fd >= 0)
		return 0;
	fd = tree_wakeups_open(w->registry);
	if (fd < 0)
		return fd;
	r = ringbuf_map(fd, &w->ring);
	if (r < 0)
		return r;
	r = sd_event_add_io(w->loop, &w->io, fd, EPOLLIN, on_io, w);
	if (r >= 0)
		r = sd_event_source_set_priority(w->io, FAIR_QUEUE_PRIORITY);
	if (r < 0) {
		w->io = sd_event_source_disable_unref(w->io);
		ringbuf_unmap(&w->ring);
		return r;
	}
	sd_event_source_set_enabled(w->io, SD_EVENT_OFF);
	w->fd = TAKE_FD(fd);
	return 0;
}

static void close_ring(struct wakeups *w)
{
	w->io = sd_event_source_disable_unref(w->io);
	ringbuf_unmap(&w->ring);
	w->fd = close_fd(w->fd);
}

/*
 * While nobody waits, the ring buffer fills up, which costs its writers nothing. Before listening
 * it must be emptied: the kernel only wakes a consumer that has read all earlier records.
 */
static void listen_to_ring(struct wakeups *w, bool on)
{
	int enabled = SD_EVENT_OFF;

	if (!w->io || sd_event_source_get_enabled(w->io, &enabled) < 0 ||
	    (enabled != SD_EVENT_OFF) == on)
		return;
	if (on) {
		ringbuf_consume(&w->ring, NULL, NULL);
		/* Each time: switched off while it is limited, it would stay so (sd-event, 252). */
		sd_event_source_set_ratelimit(w->io, READS_INTERVAL_USEC, READS_MAX);
	}
	sd_event_source_set_enabled(w->io, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* ── wakers ─────────────────────────────────────────────────────────────────────────────── */

static void drop_if_unused(struct target *t)
{
	struct wakeups *w = t->wakeups;
	size_t i = place_of(w, t->id);

	if (t->first)
		return;
	not_due(t);
	assert(i < w->n && w->targets[i] == t);
	w->n--;
	memmove(&w->targets[i], &w->targets[i + 1], (w->n - i) * sizeof(struct target *));
	free(t);
	set_timer(w);
	if (w->n == 0)
		listen_to_ring(w, false);
}

static void on_gone(struct peer_guest *guest)
{
	struct waker *waker = (struct waker *)guest;
	struct target *t = waker->target;

	*waker->link = waker->next;
	if (waker->next)
		waker->next->link = waker->link;
	close_fd(waker->fd);
	free(waker);
	t->wakeups->n_wakers--;
	drop_if_unused(t);
}

void wakeups_take_back(struct peer_guest *guest)
{
	struct peer *peer = guest->peer;
	uint64_t began = peer_clock(peer);

	peer_detach(guest);
	on_gone(guest);
	peer_spend(peer, began);
}

/* Whether the limits of this peer, of its user and of all permit another waker. */
static bool has_room(const struct wakeups *w, const struct peer *peer)
{
	uint32_t uid = peer_credentials(peer)->uid;
	size_t of_peer = 0, of_user = 0, of_others = 0;

	for (size_t i = 0; i < w->n; i++)
		for (const struct waker *k = w->targets[i]->first; k; k = k->next) {
			uint32_t owner = peer_credentials(k->guest.peer)->uid;

			of_peer += k->guest.peer == peer;
			of_user += owner == uid;
			of_others += owner != 0;
		}
	return of_peer < WAKEUPS_MAX && (uid == 0 || (of_user < w->max / 2 && of_others < w->max));
}

static int attach(struct target *t, struct peer *peer, struct waker **ret)
{
	struct waker *waker = calloc(1, sizeof(*waker));

	if (!waker)
		return -ENOMEM;
	waker->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (waker->fd < 0) {
		int r = -errno;

		free(waker);
		return r;
	}
	waker->guest.gone = on_gone;
	waker->target = t;
	waker->next = t->first;
	waker->link = &t->first;
	if (waker->next)
		waker->next->link = &waker->next;
	t->first = waker;
	t->wakeups->n_wakers++;
	peer_attach(peer, &waker->guest);
	*ret = waker;
	return 0;
}

int wakeups_add(struct wakeups *w, struct peer *peer, uint64_t event_id, int *ret,
		struct peer_guest **ret_guest)
{
	struct target *t = find(w, event_id);
	struct waker *waker = NULL;
	int r;

	if (!has_room(w, peer))
		return -EDQUOT;
	r = w->signaller.context ? 0 : signaller_init(&w->signaller);
	if (r < 0)
		return r;
	r = open_ring(w);
	if (r < 0)
		return r;
	if (!t) {
		r = add_target(w, event_id, &t);
		if (r < 0)
			return r;
	}
	r = attach(t, peer, &waker);
	if (r < 0) {
		drop_if_unused(t);
		return r;
	}
	listen_to_ring(w, true);
	/* A ring may have sent its wakeup just before the reader listened, and be silent now. */
	due_later(t);
	set_timer(w);
	*ret = waker->fd;
	*ret_guest = &waker->guest;
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

void wakeups_free(struct wakeups *w)
{
	if (!w)
		return;
	assert(w->n == 0 && w->n_wakers == 0);
	close_ring(w);
	signaller_done(&w->signaller);
	sd_event_source_disable_unref(w->timer);
	sd_event_unref(w->loop);
	free(w->targets);
	free(w);
}

static void cleanup_wakeups(struct wakeups **w)
{
	wakeups_free(*w);
}

int wakeups_new(sd_event *loop, const char *registry, size_t max, struct wakeups **ret)
{
	_cleanup_(cleanup_wakeups) struct wakeups *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->loop = sd_event_ref(loop);
	w->fd = w->signaller.null = -EBADF;
	w->max = max;
	if ((size_t)snprintf(w->registry, sizeof(w->registry), "%s", registry) >=
	    sizeof(w->registry))
		return -ENAMETOOLONG;
	/* To the millisecond: a small delay costs a reader nothing. */
	r = timer_add(loop, &w->timer, on_timer, w);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}
