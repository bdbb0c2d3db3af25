// SPDX-License-Identifier: LGPL-2.1-or-later
/* Waits for the ends of targets. See ends.h. */
#include "daemon/engine/event/ends.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/engine/kernel/target.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define LOOK_MSEC 1000

struct end {
	uint64_t id;
	struct pp_msg_target target;
	int pidfd; /* -EBADF: it has none */
};

static struct end *ends;
static size_t n_ends, room;
static int epoll_fd = -EBADF;
static int64_t due; /* the next look, by CLOCK_MONOTONIC */

bool ends_have_room(void)
{
	return n_ends < ENDS_MAX;
}

static void drop(size_t i)
{
	close_fd(ends[i].pidfd); /* which takes it out of the epoll set: nobody else has it */
	ends[i] = ends[--n_ends];
}

void ends_forget(uint64_t id)
{
	for (size_t i = n_ends; i > 0; i--)
		if (!id || ends[i - 1].id == id)
			drop(i - 1);
}

static int make_room(void)
{
	size_t more = room ? 2 * room : 16;
	struct end *v;

	if (n_ends < room)
		return 0;
	v = reallocarray(ends, more, sizeof(*v));
	if (!v)
		return -ENOMEM;
	ends = v;
	room = more;
	return 0;
}

static int add_to_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_fd < 0)
		epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int ends_watch(uint64_t id, const struct pp_msg_target *target)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	ends_forget(id);
	if (!ends_have_room())
		return -ENOSPC;
	r = make_room();
	if (r < 0)
		return r;
	fd = target_watch(target);
	if (fd >= 0)
		r = add_to_epoll(fd);
	/* One that has ended by now, or of which that is unknown, is looked at. */
	if (r < 0)
		return r;
	if (fd < 0 && due < pp_clock_ms())
		due = pp_clock_ms() + (fd == -ESRCH ? 0 : LOOK_MSEC);
	ends[n_ends++] = (struct end){ id, *target, fd < 0 ? -EBADF : TAKE_FD(fd) };
	return 0;
}

int ends_fd(void)
{
	return epoll_fd;
}

static bool is_looked_at(const struct end *e)
{
	return e->pidfd < 0;
}

int ends_timeout(void)
{
	int64_t left = due - pp_clock_ms();

	for (size_t i = 0; i < n_ends; i++)
		if (is_looked_at(&ends[i]))
			return (int)MAX(left, (int64_t)0);
	return -1;
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static bool has_ended(const struct end *e, bool has_signal, bool is_due)
{
	if (is_looked_at(e))
		return is_due && target_has_ended(&e->target);
	return has_signal && is_readable(e->pidfd);
}

/* The index of the next from i on whose target has ended; n_ends: none. */
static size_t find_ended(size_t i, bool has_signal, bool is_due)
{
	while (i < n_ends && !has_ended(&ends[i], has_signal, is_due))
		i++;
	return i;
}

void ends_look(void (*fn)(uint64_t id, void *userdata), void *userdata)
{
	struct epoll_event event;
	bool has_signal = epoll_fd >= 0 && epoll_wait(epoll_fd, &event, 1, 0) > 0;
	bool is_due = pp_clock_ms() >= due;
	size_t i = 0;

	if (!has_signal && !is_due)
		return;
	while ((i = find_ended(i, has_signal, is_due)) < n_ends) {
		uint64_t id = ends[i].id;

		drop(i);
		fn(id, userdata); /* it may forget all */
	}
	if (is_due)
		due = pp_clock_ms() + LOOK_MSEC;
}
