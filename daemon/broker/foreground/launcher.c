// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs engine, dumper and keeper, and nothing else. Takes no orders and reads no input; must not
 * know what its children do. */
#include "daemon/broker/foreground/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/broker/config/dropins.h"
#include "daemon/broker/foreground/instance.h"
#include "daemon/broker/foreground/launcher-internal.h"
#include "daemon/broker/foreground/sockets.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define HASTY_MSEC 1000	      /* a child that dies sooner restarts later */
#define BACKOFF_MIN_MSEC 100  /* … after this time, */
#define BACKOFF_MAX_MSEC 5000 /* … doubled each time up to this */
#define MERCY_MSEC 5000	      /* from SIGTERM to SIGKILL; the children recover from either */

/* ── watching them ──────────────────────────────────────────────────────────────────────── */

static void start_child(struct launcher *l, struct child *c)
{
	pid_t launcher = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		child_exec(l, c, launcher);
		_exit(127);
	}
	c->started = pp_clock_ms();
	if (pid < 0) {
		log_error("Cannot start the %s: %s.", c->what, strerror(errno));
		c->due = c->started + BACKOFF_MAX_MSEC;
		return;
	}
	c->pid = pid;
}

static void tell_end(const struct child *c, int status)
{
	if (WIFSIGNALED(status))
		log_warning("The %s was ended by signal %d (%s); it is started again.", c->what,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_warning("The %s ended with status %d; it is started again.", c->what,
			    WEXITSTATUS(status));
}

/* Returns whether it has ended. */
static bool reap(struct child *c, int *ret_status)
{
	if (!c->pid || waitpid(c->pid, ret_status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	return true;
}

static void schedule(struct child *c)
{
	if (pp_clock_ms() - c->started >= HASTY_MSEC) {
		c->backoff = 0;
	} else {
		c->backoff = c->backoff ? MIN(c->backoff * 2, BACKOFF_MAX_MSEC) : BACKOFF_MIN_MSEC;
	}
	c->due = pp_clock_ms() + c->backoff;
}

/* ── the one that lasts ─────────────────────────────────────────────────────────────────── */

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* The descriptor to wait for, apart from SIGCHLD. < 0: none. */
static int lasting_fd(const struct launcher *l, const struct child *c)
{
	if (l->alive < 0) /* while ending, only the end of a keeper that was found matters */
		return c->found;
	if (!c->lasting || c->pid || pp_clock_ms() < c->due)
		return -EBADF;
	return c->found >= 0 ? c->found : c->listen;
}

/* The keeper that was found has ended, and its socket with it. */
static void replace_found(struct launcher *l, struct child *c)
{
	const struct launcher_options *o = &l->options;

	if (c->found >= 0 && !is_readable(c->found))
		return;
	if (socket_listen(o->instance, "/keeper", 0600, o->broker, &c->listen) < 0)
		c->due = pp_clock_ms() + BACKOFF_MAX_MSEC;
	c->found = close_fd(c->found);
}

/* The keeper is needed when somebody waits on its socket. */
static bool is_wanted(struct launcher *l, struct child *c)
{
	if (c->pid || pp_clock_ms() < c->due)
		return false;
	if (!c->lasting)
		return true;
	if (c->listen < 0)
		replace_found(l, c);
	return is_readable(c->listen);
}

/* An idle keeper ends by itself: no failure, even if somebody has connected since. */
static bool ended_in_peace(const struct child *c, int status)
{
	return c->lasting && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ── waiting ────────────────────────────────────────────────────────────────────────────── */

/* Waits up to msec (< 0: forever). Returns whether the launcher must end. */
static bool wait_for_news(struct launcher *l, int msec)
{
	struct pollfd p[2 + ARRAY_SIZE(l->children)] = {
		{ .fd = l->alive, .events = POLLIN },
		{ .fd = l->signals, .events = POLLIN },
	};
	struct signalfd_siginfo si;

	for (size_t i = 0; i < ARRAY_SIZE(l->children); i++)
		p[2 + i] = (struct pollfd){ lasting_fd(l, &l->children[i]), POLLIN, 0 };
	if (poll(p, ARRAY_SIZE(p), msec) <= 0)
		return false;
	if (p[0].revents)
		return true;
	return p[1].revents && read(l->signals, &si, sizeof(si)) == sizeof(si) &&
	       si.ssi_signo == SIGTERM;
}

/* Starts, restarts or reaps one child. Returns the milliseconds until the next call; -1: an event
 * will wake us. */
static int look_after(struct launcher *l, struct child *c)
{
	int status;

	if (reap(c, &status)) {
		if (!ended_in_peace(c, status))
			tell_end(c, status);
		if (!ended_in_peace(c, status) || is_readable(c->listen))
			schedule(c);
	}
	if (is_wanted(l, c))
		start_child(l, c);
	if (c->pid || pp_clock_ms() >= c->due)
		return -1;
	return (int)MAX(c->due - pp_clock_ms(), (int64_t)0);
}

static void watch(struct launcher *l)
{
	int msec;

	do {
		msec = -1;
		FOREACH_CHILD(c, l)
		{
			int next = look_after(l, c);

			if (next >= 0 && (msec < 0 || next < msec))
				msec = next;
		}
	} while (!wait_for_news(l, msec));
}

/* `lasting`: the keeper counts, too. */
static bool all_ended(struct launcher *l, bool lasting)
{
	bool ended = true;
	int status;

	FOREACH_CHILD(c, l)
	{
		if (c->lasting && !lasting)
			continue;
		reap(c, &status);
		if (is_readable(c->found))
			c->found = close_fd(c->found);
		ended &= c->pid == 0 && c->found < 0;
	}
	return ended;
}

/* Returns whether they ended in time. */
static bool wait_for_end(struct launcher *l, bool lasting)
{
	int64_t end = pp_clock_ms() + MERCY_MSEC;

	while (!all_ended(l, lasting)) {
		if (pp_clock_ms() >= end)
			return false;
		wait_for_news(l, (int)MAX(end - pp_clock_ms(), (int64_t)0));
	}
	return true;
}

static void end_children(struct launcher *l)
{
	int status;

	FOREACH_CHILD(c, l)
	{
		if (c->lasting)
			c->due = INT64_MAX; /* prevents a restart */
		else if (c->pid)
			kill(c->pid, SIGTERM);
	}
	l->alive = close_fd(l->alive); /* poll(2) ignores a negative descriptor */
	if (wait_for_end(l, false))
		return;
	FOREACH_CHILD(c, l)
	{
		if (!c->pid || c->lasting)
			continue;
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
	}
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

/* Keeps the standard streams and the descriptors in `keep`; our parent may have others open. */
static void close_others(const int *keep, size_t n)
{
	unsigned from = 3;

	for (;;) {
		unsigned next = ~0U;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= (int)from)
				next = MIN(next, (unsigned)keep[i]);
		if (next == ~0U)
			break;
		if (next > from)
			close_range(from, next - 1, 0);
		from = next + 1;
	}
	close_range(from, ~0U, 0);
}

/* Removes the folder for --boot if it is empty. */
static void remove_empty_state(const struct launcher *l)
{
	char path[PATH_MAX];

	if (dropin_state_place(l->options.instance, "/events.d", path, sizeof(path)) < 0 ||
	    rmdir(path) < 0)
		return;
	if (dropin_state_place(l->options.instance, "", path, sizeof(path)) == 0)
		rmdir(path);
}

/*
 * An instance without events has no reason to come back, and nobody else would remove its files.
 * systemd owns the default instance's place. Nothing is recorded any more, so the keeper ends by
 * itself.
 */
static void remove_empty_instance(struct launcher *l)
{
	const char *instance = l->options.instance;

	if (*instance && instance_is_empty(instance) && wait_for_end(l, true))
		instance_remove(instance);
}

static void launcher_main(struct launcher *l)
{
	const struct launcher_options *o = &l->options;
	const int keep[] = { l->alive,	       o->engine_listen, o->dumper_listen,
			     o->keeper_listen, o->keeper_found,	 o->lock };
	sigset_t mask;

	close_others(keep, ARRAY_SIZE(keep));
	/* Its own session: ^C reaches only the broker, which then ends the others in order. */
	setsid();
	prctl(PR_SET_NAME, "perfpersist-run");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	l->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	if (l->signals < 0) {
		log_error("The launcher of engine, dumper and keeper cannot start: %s.",
			  strerror(errno));
		return;
	}
	children_describe(l);
	watch(l);
	end_children(l);
	remove_empty_state(l);
	remove_empty_instance(l);
}

int launcher_start(const struct launcher_options *options, pid_t *ret_pid, int *ret_alive)
{
	struct launcher l = { .options = *options };
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		l.alive = ends[0];
		launcher_main(&l);
		_exit(0);
	}
	close_fd(ends[0]);
	if (pid < 0) {
		int r = -errno;

		close_fd(ends[1]);
		return r;
	}
	*ret_pid = pid;
	*ret_alive = ends[1];
	return 0;
}
