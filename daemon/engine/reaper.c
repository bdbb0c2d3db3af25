// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removes what was deleted, in a process of its own. */
#include "daemon/engine/reaper.h"

#include <signal.h>
#include <sys/wait.h>

#include "daemon/engine/pins.h"
#include "daemon/engine/remains.h"
#include "proto/macro.h"

static pid_t reaper = -1; /* the one that runs */
static bool again;	  /* there is more since it was started */

static int start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/* It inherits the engine's lock and sockets; others must not wait for it. */
		close_range(STDERR_FILENO + 1, ~0U, 0);
		_exit(pins_reap(remains_bury) < 0);
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

/* One that was killed has left work behind; one that failed would only fail again. */
static void collect(int flags)
{
	int status = 0;
	pid_t pid;

	if (reaper < 0)
		return;
	pid = waitpid(reaper, &status, flags);
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	/* (< 0: it is gone, and nobody says how; to wait for it would be for ever.) */
	reaper = -1;
	if (again || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		start();
}

void reaper_collect(void)
{
	collect(WNOHANG);
}

void reaper_wait(void)
{
	while (reaper >= 0)
		collect(0);
}
