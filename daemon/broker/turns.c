// SPDX-License-Identifier: LGPL-2.1-or-later
/* Round robin over users. Must not know what it is that waits. */
#include "daemon/broker/turns.h"

#include <assert.h>
#include <sys/eventfd.h>

#include "proto/macro.h"

struct turn_user {
	struct turn_user *next;	 /* of all */
	struct turn_user *after; /* of those with something waiting */
	uint32_t uid;
	size_t members;
	struct turn *first, **last; /* waiting, in order */
	bool queued;
};

/*
 * An eventfd, and not a deferred source: those count as pending since the beginning of time, and
 * would keep everything else of the loop from being looked at for as long as there are turns.
 */
struct turns {
	void (*take)(struct turn *turn);
	sd_event_source *io;
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
	if (!user->queued)
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
	t->take(turn);
	return 0;
}

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
	struct turn_user *user = turn->user, **p = &t->users;

	if (turn->waiting)
		remove_turn(turn);
	if (user->queued && !user->first)
		remove_user(t, user);
	turn->user = NULL;
	if (--user->members > 0)
		return;
	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	free(user);
}

void turns_free(struct turns *t)
{
	if (!t)
		return;
	assert(!t->users && !t->first);
	sd_event_source_disable_unref(t->io);
	close_fd(t->fd);
	free(t);
}

static void cleanup_turns(struct turns **t)
{
	turns_free(*t);
}

int turns_new(sd_event *loop, void (*take)(struct turn *turn), struct turns **ret)
{
	_cleanup_(cleanup_turns) struct turns *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->take = take;
	t->last = &t->first;
	t->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->fd < 0)
		return -errno;
	err = sd_event_add_io(loop, &t->io, t->fd, EPOLLIN, on_turn, t);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(t);
	return 0;
}
