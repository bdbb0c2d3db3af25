// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lets work that runs until it is interrupted end in order. Signals are blocked except during
 * waits, so that none is missed between two waits.
 */
#include <poll.h>
#include <signal.h>

#include "client/perfctl/perfctl.h"

static volatile sig_atomic_t caught;
static volatile sig_atomic_t came[_NSIG]; /* signals that only end a wait */

static void on_signal(int number)
{
	caught = number;
}

static void on_other(int number)
{
	came[number] = 1;
}

static void handle(int number, void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(number, &action, NULL);
}

void signals_catch(void)
{
	struct sigaction old;

	handle(SIGINT, on_signal);
	handle(SIGTERM, on_signal);
	if (sigaction(SIGHUP, NULL, &old) < 0 || old.sa_handler != SIG_IGN) /* nohup(1) */
		handle(SIGHUP, on_signal);
}

void signals_catch_also(int number)
{
	handle(number, on_other);
}

bool signals_take(int number)
{
	struct timespec now = {};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (sigtimedwait(&set, NULL, &now) != number && !came[number])
		return false;
	came[number] = 0;
	return true;
}

bool signals_caught(void)
{
	sigset_t pending;

	if (caught)
		return true;
	/* A caller that always has more to do never waits: look for pending signals. */
	sigemptyset(&pending);
	sigpending(&pending);
	return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
	       sigismember(&pending, SIGHUP) == 1;
}

void signals_wait(uint64_t nsec, int fd)
{
	struct timespec t = { .tv_sec = (time_t)(nsec / 1000000000),
			      .tv_nsec = (long)(nsec % 1000000000) };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	sigset_t none;

	if (caught)
		return;
	sigemptyset(&none);
	ppoll(&pfd, 1, &t, &none);
}
