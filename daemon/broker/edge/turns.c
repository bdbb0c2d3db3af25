// SPDX-License-Identifier: LGPL-2.1-or-later
/* Round robin over users. Must not know what it is that waits. */
#include "daemon/broker/edge/turns.h"

#include <assert.h>
#include <sys/eventfd.h>
#include <time.h>

#include "proto/clock.h"
#include "proto/macro.h"

#define DEBT_MAX_USEC (60 * 1000 * 1000ULL)

struct turn_user {
	struct turn_user *next;	 /* of all */
	struct turn_user *after; /* of those with something waiting */
	uint32_t uid;
	size_t members;
	struct turn *first, **last; /* waiting, in order */
	bool queued;
	bool indebted;	     /* is not queued, whatever waits, and not freed */
	uint64_t until_usec; /* CLOCK_MONOTONIC */
	uint64_t spent_nsec; /* as of spent_usec; a share of the time that passes is given back */
	uint64_t spent_usec;
};

/*
 * An eventfd, and not a deferred source: those count as pending since the beginning of time, and
 * would keep everything else of the loop from being looked at for as long as there are turns.
 */
struct turns {
	struct turns_hooks hooks;
	sd_event_source *io, *timer; /* the latter: the next debt that ends */
	int fd;
	struct turn_user *users;
	struct turn_user *first, **last; /* with something waiting, in order */
};

static void append_user(struct turns *t, struct turn_user *user)
{
	if (!t->first && eventfd_write(t->fd, 1) < 0)
		assert(!"an eventfd that is full");
	user->queued = true;
	user->after = NULL;
	*t->last = user;
	t->last = &user->after;
}

static void remove_user(struct turns *t, struct turn_user *user)
{
	struct turn_user **p = &t->first;
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

static void remove_turn(struct turn *turn)
{
	struct turn_user *user = turn->user;
	struct turn **p = &user->first;

	while (*p != turn)
		p = &(*p)->next;
	*p = turn->next;
	if (!*p)
		user->last = p;
	turn->waiting = false;
}

void turns_ready(struct turns *t, struct turn *turn)
{
	struct turn_user *user = turn->user;

	if (turn->waiting)
		return;
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
	struct turns *t = userdata;
	struct turn_user *user = t->first;
	struct turn *turn;

	if (!user)
		return 0;
	turn = user->first;
	remove_turn(turn);
	/* To the end, before what is taken can make it go away. */
	remove_user(t, user);
	if (user->first)
		append_user(t, user);
	t->hooks.take(turn);
	return 0;
}

/* ── debts ──────────────────────────────────────────────────────────────────────────────── */

static void free_user(struct turns *t, struct turn_user *user)
{
	struct turn_user **p = &t->users;

	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	free(user);
}

static void arm(struct turns *t)
{
	uint64_t first = UINT64_MAX;

	for (struct turn_user *user = t->users; user; user = user->next)
		if (user->indebted)
			first = MIN(first, user->until_usec);
	if (first == UINT64_MAX) {
		sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(t->timer, first);
	sd_event_source_set_enabled(t->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct turns *t = userdata;
	struct turn_user *user, *next;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000;

	for (user = t->users; user; user = next) {
		next = user->next;
		if (!user->indebted || user->until_usec > now)
			continue;
		user->indebted = false;
		if (user->members == 0)
			free_user(t, user);
		else if (user->first)
			append_user(t, user);
	}
	arm(t);
	t->hooks.relieved(t->hooks.userdata);
	return 0;
}

bool turns_owe(struct turns *t, struct turn *turn, uint64_t nsec)
{
	struct turn_user *user = turn->user;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000, until;
	bool begins = !user->indebted;

	if (user->uid == 0)
		return false;
	until = (begins ? now : MAX(now, user->until_usec)) + nsec / 1000 * TURNS_SHARE;
	user->until_usec = MIN(until, now + DEBT_MAX_USEC);
	user->indebted = true;
	if (user->queued)
		remove_user(t, user);
	arm(t);
	return begins;
}

bool turns_spend(struct turns *t, struct turn *turn, uint64_t nsec)
{
	struct turn_user *user = turn->user;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000,
		 back = (now - user->spent_usec) * 1000 / TURNS_SHARE;
	uint64_t spent = user->spent_nsec - MIN(user->spent_nsec, back) + nsec;

	user->spent_usec = now;
	user->spent_nsec = spent < TURNS_CREDIT_NSEC ? spent : 0;
	return spent >= TURNS_CREDIT_NSEC && turns_owe(t, turn, spent);
}

bool turns_in_debt(const struct turn *turn)
{
	return turn->user->indebted;
}

/* ── who takes turns ────────────────────────────────────────────────────────────────────── */

int turns_join(struct turns *t, struct turn *turn, uint32_t uid)
{
	struct turn_user *user = t->users;

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
	*turn = (struct turn){ .user = user };
	return 0;
}

void turns_leave(struct turns *t, struct turn *turn)
{
	struct turn_user *user = turn->user;

	if (turn->waiting)
		remove_turn(turn);
	if (user->queued && !user->first)
		remove_user(t, user);
	turn->user = NULL;
	/* Nobody gets rid of a debt by coming anew. */
	if (--user->members == 0 && !user->indebted)
		free_user(t, user);
}

void turns_free(struct turns *t)
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

static void cleanup_turns(struct turns **t)
{
	turns_free(*t);
}

int turns_new(sd_event *loop, const struct turns_hooks *hooks, struct turns **ret)
{
	_cleanup_(cleanup_turns) struct turns *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->hooks = *hooks;
	t->last = &t->first;
	t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->fd < 0)
		return -errno;
	err = sd_event_add_io(loop, &t->io, t->fd, EPOLLIN, on_turn, t);
	if (err >= 0)
		err = sd_event_add_time(loop, &t->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, t);
	if (err >= 0)
		err = sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(t);
	return 0;
}
