// SPDX-License-Identifier: LGPL-2.1-or-later
/* Round robin over users. Must not know the kind of work that waits. */
#include "daemon/broker/edge/fair-queue.h"

#include <assert.h>
#include <sys/eventfd.h>
#include <time.h>

#include "daemon/broker/link/timer.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define DEBT_MAX_USEC (60 * 1000 * 1000ULL)

/* What leads to a debt, and what that takes away. */
struct price {
	uint64_t share, credit_nsec;
	bool silences; /* sends, too: not only turns */
};

static const struct price of_calls = { FAIR_QUEUE_SHARE, FAIR_QUEUE_CREDIT_NSEC, true };
static const struct price of_requests = { FAIR_QUEUE_ASK_SHARE, FAIR_QUEUE_ASK_CREDIT_NSEC, false };
static const struct price of_delays = { FAIR_QUEUE_SHARE, FAIR_QUEUE_CREDIT_NSEC, false };

/* Passing time pays a share of it back. */
struct account {
	uint64_t spent_nsec; /* at spent_usec */
	uint64_t spent_usec;
};

struct fair_queue_user {
	struct fair_queue_user *next;  /* list of all users */
	struct fair_queue_user *after; /* list of users with waiting members */
	uint32_t uid;
	size_t members;
	struct fair_queue_member *first, **last; /* waiting, in order */
	bool queued;
	bool indebted;	     /* stays unqueued whatever waits, and is not freed */
	uint64_t until_usec; /* CLOCK_MONOTONIC */
	bool silenced;	     /* for a part of the debt */
	uint64_t silenced_until_usec;
	struct account calls, requests, delays;
};

/*
 * The queue uses an eventfd. Deferred event sources count as pending since the beginning of time:
 * the loop would not look at anything else while there is work.
 */
struct fair_queue {
	struct fair_queue_hooks hooks;
	sd_event_source *io, *timer; /* timer: the next debt that ends */
	int fd;
	struct fair_queue_user *users;
	struct fair_queue_user *first, **last; /* users with waiting members, in order */
};

static void append_user(struct fair_queue *t, struct fair_queue_user *user)
{
	if (!t->first && eventfd_write(t->fd, 1) < 0)
		assert(!"an eventfd that is full");
	user->queued = true;
	user->after = NULL;
	*t->last = user;
	t->last = &user->after;
}

static void remove_user(struct fair_queue *t, struct fair_queue_user *user)
{
	struct fair_queue_user **p = &t->first;
	eventfd_t count;

	while (*p != user)
		p = &(*p)->after;
	*p = user->after;
	if (!*p)
		t->last = p;
	user->queued = false;
	if (!t->first && eventfd_read(t->fd, &count) < 0)
		assert(!"an eventfd that was not written");
}

static void remove_turn(struct fair_queue_member *turn)
{
	struct fair_queue_user *user = turn->user;
	struct fair_queue_member **p = &user->first;

	while (*p != turn)
		p = &(*p)->next;
	*p = turn->next;
	if (!*p)
		user->last = p;
	turn->waiting = false;
}

void fair_queue_ready(struct fair_queue *t, struct fair_queue_member *turn)
{
	struct fair_queue_user *user = turn->user;

	if (turn->waiting)
		return;
	if (!t->first && user->members == 1 && !user->indebted) {
		t->hooks.take(turn);
		return;
	}
	turn->waiting = true;
	turn->next = NULL;
	*user->last = turn;
	user->last = &turn->next;
	if (!user->queued && !user->indebted)
		append_user(t, user);
}

static int on_turn(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		   void *userdata)
{
	struct fair_queue *t = userdata;
	struct fair_queue_user *user = t->first;
	struct fair_queue_member *turn;

	if (!user)
		return 0;
	turn = user->first;
	remove_turn(turn);
	/* Requeue first: the callback can free the user. */
	remove_user(t, user);
	if (user->first)
		append_user(t, user);
	t->hooks.take(turn);
	return 0;
}

/* ── debts ──────────────────────────────────────────────────────────────────────────────── */

/* Whether something of it is not paid back yet. */
static bool is_open(const struct account *account, const struct price *price)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000;

	return account->spent_nsec > (now - account->spent_usec) * 1000 / price->share;
}

/* Who connects anew must not begin anew. */
static bool is_forgotten(const struct fair_queue_user *user)
{
	return user->members == 0 && !user->indebted && !is_open(&user->calls, &of_calls) &&
	       !is_open(&user->requests, &of_requests) && !is_open(&user->delays, &of_delays);
}

static void free_user(struct fair_queue *t, struct fair_queue_user *user)
{
	struct fair_queue_user **p = &t->users;

	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	free(user);
}

static void arm(struct fair_queue *t)
{
	uint64_t first = UINT64_MAX;

	for (struct fair_queue_user *user = t->users; user; user = user->next)
		if (user->indebted)
			first = MIN(first,
				    user->silenced ? user->silenced_until_usec : user->until_usec);
	if (first == UINT64_MAX) {
		sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(t->timer, first);
	sd_event_source_set_enabled(t->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct fair_queue *t = userdata;
	struct fair_queue_user *user, *next;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000;

	for (user = t->users; user; user = next) {
		next = user->next;
		user->silenced &= user->silenced_until_usec > now;
		if (!user->indebted || user->until_usec > now)
			continue;
		user->indebted = false;
		if (is_forgotten(user))
			free_user(t, user);
		else if (user->first)
			append_user(t, user);
	}
	arm(t);
	t->hooks.relieved(t->hooks.userdata);
	return 0;
}

/* Returns whether it begins. */
static bool prolong(bool *lasts, uint64_t *until_usec, uint64_t usec)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000;
	bool begins = !*lasts;

	*until_usec = MIN((begins ? now : MAX(now, *until_usec)) + usec, now + DEBT_MAX_USEC);
	*lasts = true;
	return begins;
}

static bool owe(struct fair_queue *t, struct fair_queue_user *user, const struct price *price,
		uint64_t nsec)
{
	uint64_t usec = nsec / 1000 * price->share;
	bool begins;

	if (user->uid == 0)
		return false;
	/* In this order: the debt ends no earlier than the silence. */
	begins = price->silences && prolong(&user->silenced, &user->silenced_until_usec, usec);
	begins |= prolong(&user->indebted, &user->until_usec, usec);
	if (user->queued)
		remove_user(t, user);
	arm(t);
	return begins;
}

static bool spend(struct fair_queue *t, struct fair_queue_user *user, struct account *account,
		  const struct price *price, uint64_t nsec)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000,
		 back = (now - account->spent_usec) * 1000 / price->share;
	uint64_t spent = account->spent_nsec - MIN(account->spent_nsec, back) + nsec;

	account->spent_usec = now;
	account->spent_nsec = spent < price->credit_nsec ? spent : 0;
	return spent >= price->credit_nsec && owe(t, user, price, spent);
}

bool fair_queue_owe(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec)
{
	return owe(t, turn->user, &of_calls, nsec);
}

bool fair_queue_spend(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec)
{
	return spend(t, turn->user, &turn->user->calls, &of_calls, nsec);
}

bool fair_queue_ask(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec)
{
	return spend(t, turn->user, &turn->user->requests, &of_requests, nsec);
}

bool fair_queue_delay(struct fair_queue *t, struct fair_queue_member *turn, uint64_t nsec)
{
	return spend(t, turn->user, &turn->user->delays, &of_delays, nsec);
}

bool fair_queue_in_debt(const struct fair_queue_member *turn)
{
	return turn->user->indebted;
}

bool fair_queue_is_silenced(const struct fair_queue_member *turn)
{
	return turn->user->silenced;
}

/* ── who takes turns ────────────────────────────────────────────────────────────────────── */

int fair_queue_join(struct fair_queue *t, struct fair_queue_member *turn, uint32_t uid)
{
	struct fair_queue_user *user = t->users;

	while (user && user->uid != uid)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		user->last = &user->first;
		user->next = t->users;
		t->users = user;
	}
	user->members++;
	for (struct fair_queue_user *old = t->users, *next; old; old = next) {
		next = old->next;
		if (is_forgotten(old))
			free_user(t, old);
	}
	*turn = (struct fair_queue_member){ .user = user };
	return 0;
}

void fair_queue_leave(struct fair_queue *t, struct fair_queue_member *turn)
{
	struct fair_queue_user *user = turn->user;

	if (turn->waiting)
		remove_turn(turn);
	if (user->queued && !user->first)
		remove_user(t, user);
	turn->user = NULL;
	/* A user cannot lose a debt by reconnecting, nor what leads to one. */
	user->members--;
	if (is_forgotten(user))
		free_user(t, user);
}

void fair_queue_free(struct fair_queue *t)
{
	if (!t)
		return;
	while (t->users) {
		assert(t->users->members == 0);
		free_user(t, t->users);
	}
	assert(!t->first);
	sd_event_source_disable_unref(t->io);
	sd_event_source_disable_unref(t->timer);
	close_fd(t->fd);
	free(t);
}

static void cleanup_queue(struct fair_queue **t)
{
	fair_queue_free(*t);
}

int fair_queue_new(sd_event *loop, const struct fair_queue_hooks *hooks, struct fair_queue **ret)
{
	_cleanup_(cleanup_queue) struct fair_queue *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->hooks = *hooks;
	t->last = &t->first;
	t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->fd < 0)
		return -errno;
	r = sd_event_add_io(loop, &t->io, t->fd, EPOLLIN, on_turn, t);
	if (r >= 0)
		r = sd_event_source_set_priority(t->io, FAIR_QUEUE_PRIORITY);
	if (r >= 0)
		r = timer_add(loop, &t->timer, on_timer, t);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}
