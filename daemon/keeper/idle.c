// SPDX-License-Identifier: LGPL-2.1-or-later
/* Watches the socket's file, and waits a limited time for the first connection. */
#include "daemon/keeper/idle.h"

#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "proto/macro.h"

#define FIRST_SECONDS 10

/* The file that exists now may belong to another keeper. */
static bool is_there(const struct idle *idle)
{
	struct stat st;

	return lstat(idle->address.sun_path, &st) == 0 && st.st_dev == idle->device &&
	       st.st_ino == idle->inode;
}

static int watch_directory(struct idle *idle)
{
	const uint32_t events = IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE |
				IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char path[sizeof(idle->address.sun_path)];

	idle->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (idle->watch < 0)
		return -errno;
	memcpy(path, idle->address.sun_path, sizeof(path));
	return inotify_add_watch(idle->watch, dirname(path), events) < 0 ? -errno : 0;
}

static int start_timer(struct idle *idle)
{
	const struct itimerspec first = { .it_value.tv_sec = FIRST_SECONDS };

	idle->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (idle->timer < 0 || timerfd_settime(idle->timer, 0, &first, NULL) < 0)
		return -errno;
	return 0;
}

int idle_init(struct idle *idle, int listener)
{
	socklen_t size = sizeof(idle->address) - 1; /* leaves room for a NUL */
	struct stat st;
	int r;

	*idle = (struct idle){ .watch = -EBADF, .timer = -EBADF, .waiting = true };
	r = start_timer(idle);
	if (r < 0)
		return r;
	if (getsockname(listener, (struct sockaddr *)&idle->address, &size) < 0)
		return -errno;
	if (idle->address.sun_path[0] != '/')
		return 0; /* no file that could vanish */
	r = watch_directory(idle);
	if (r < 0)
		return r;
	if (lstat(idle->address.sun_path, &st) < 0) {
		idle->gone = true;
		return 0;
	}
	idle->device = st.st_dev;
	idle->inode = st.st_ino;
	return 0;
}

void idle_done(struct idle *idle)
{
	idle->watch = close_fd(idle->watch);
	idle->timer = close_fd(idle->timer);
}

void idle_wake(struct idle *idle)
{
	char events[4096] __attribute__((aligned(8)));
	uint64_t expired;

	if (idle->timer >= 0 && read(idle->timer, &expired, sizeof(expired)) > 0)
		idle->waiting = false;
	if (idle->watch < 0 || read(idle->watch, events, sizeof(events)) <= 0)
		return;
	/* The events' contents do not matter: the file system is the truth. */
	idle->gone = !is_there(idle);
}
