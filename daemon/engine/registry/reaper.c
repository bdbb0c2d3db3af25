// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removes deleted events, in a process of its own. */
#include "daemon/engine/registry/reaper.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define RETRY_MSEC 1000 /* doubles with each failure, up to 64 times */

static pid_t reaper = -1; /* the running one */
static bool again;	  /* more was deleted since it started, or it failed */
static unsigned failed;	  /* so many in a row */
static int64_t due;	  /* ms, of CLOCK_MONOTONIC: no start before, after a failure */

static void try_later(const char *why)
{
	if (!failed)
		log_error("Cannot remove deleted events from the registry: %s. They record until "
			  "that succeeds; the engine tries again.",
			  why);
	again = true;
	due = pp_clock_ms() + (RETRY_MSEC << MIN(failed, 6U));
	failed++;
}

/* In the child: it inherits the engine's lock and sockets, which others wait for. */
static void close_all_but(int fd)
{
	if (fd >= 0)
		dup2(fd, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + (fd >= 0 ? 2 : 1), ~0U, 0);
}

/* Waits for an earlier reaper: each would complain of what the other removed. */
static int start(void)
{
	_cleanup_close_ int before = -EBADF;
	pid_t pid;

	if (reaper >= 0)
		before = (int)syscall(SYS_pidfd_open, reaper, 0); /* < 0: it has ended */
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		try_later(strerror(-r));
		return r;
	}
	if (pid == 0) {
		close_all_but(before);
		if (before >= 0)
			poll(&(struct pollfd){ STDERR_FILENO + 1, POLLIN, 0 }, 1, -1);
		_exit(pins_reap(orphans_bury) < 0);
	}
	reaper = pid;
	again = false;
	return 0;
}

int reaper_kick(void)
{
	if (reaper < 0)
		return start();
	again = true;
	return 0;
}

/* Starts another if this one was killed, and left work; if one failed, only after a while. */
static void collect(int flags)
{
	int status = 0;
	pid_t pid;

	if (reaper < 0 && again && pp_clock_ms() >= due)
		start();
	if (reaper < 0)
		return;
	pid = waitpid(reaper, &status, flags);
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	/* (< 0: it is gone without a status; waiting would never end.) */
	reaper = -1;
	if (status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
		try_later("the process that removes them failed");
		return;
	}
	failed = 0;
	if (again || status != 0)
		start();
}

void reaper_collect(void)
{
	collect(WNOHANG);
}

void reaper_wait(int ms)
{
	int64_t end = pp_clock_ms() + ms, left;

	while (reaper >= 0 && (left = end - pp_clock_ms()) > 0) {
		_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, reaper, 0);

		if (fd < 0)
			break;
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, (int)left);
		collect(WNOHANG);
	}
}

void reaper_leave(void)
{
	if (again)
		start();
}
