// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs the engine, and nothing else. Takes no orders, reads nothing that anyone sends. */
#include "daemon/broker/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/log.h"
#include "proto/macro.h"

#define HASTY_MSEC 1000	      /* an engine that dies sooner is started again later */
#define BACKOFF_MIN_MSEC 100  /* … by this, */
#define BACKOFF_MAX_MSEC 5000 /* … doubled each time up to this */
#define MERCY_MSEC 5000	      /* from SIGTERM to SIGKILL; the engine recovers from either */

struct launcher {
	struct launcher_options options;
	int alive;	      /* hangs up when the broker is gone */
	int signals;	      /* SIGCHLD, SIGTERM */
	pid_t engine;	      /* 0: none */
	int64_t started, due; /* ms */
	int64_t backoff;
};

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ── the engine's own process ───────────────────────────────────────────────────────────── */

/* The socket becomes descriptor 3, as systemd would pass it; all others close. */
static int place_socket(int fd)
{
	if (fd == 3)
		return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
	return dup2(fd, 3) < 0 ? -errno : 0;
}

static void exec_engine(const struct launcher *l, pid_t launcher)
{
	const char *instance = l->options.instance;
	char uid[16], pid[16], *argv[6];
	unsigned n = 0;
	sigset_t none;

	/* Without its launcher it would run on, and keep the next one from its work. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != launcher)
		return;
	if (place_socket(l->options.listen) < 0)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(uid, sizeof(uid), "%u", l->options.broker);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	argv[n++] = (char *)l->options.engine;
	if (*instance) {
		argv[n++] = (char *)"--instance";
		argv[n++] = (char *)instance;
	}
	argv[n++] = (char *)"--broker-uid";
	argv[n++] = uid;
	argv[n] = NULL;
	execv(l->options.engine, argv);
	log_error("Cannot run the engine %s: %s.", l->options.engine, strerror(errno));
}

static void start_engine(struct launcher *l)
{
	pid_t launcher = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		exec_engine(l, launcher);
		_exit(127);
	}
	l->started = now();
	if (pid < 0) {
		log_error("Cannot start the engine: %s.", strerror(errno));
		l->due = l->started + BACKOFF_MAX_MSEC;
		return;
	}
	l->engine = pid;
}

/* ── watching it ────────────────────────────────────────────────────────────────────────── */

static void tell_end(int status)
{
	if (WIFSIGNALED(status))
		log_warning("The engine was ended by signal %d (%s); it is started again.",
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_warning("The engine ended with status %d; it is started again.",
			    WEXITSTATUS(status));
}

/* Whether it has ended. */
static bool reap(struct launcher *l, int *ret_status)
{
	if (!l->engine || waitpid(l->engine, ret_status, WNOHANG) != l->engine)
		return false;
	l->engine = 0;
	return true;
}

static void schedule(struct launcher *l)
{
	if (now() - l->started >= HASTY_MSEC) {
		l->backoff = 0;
	} else {
		l->backoff = l->backoff ? MIN(l->backoff * 2, BACKOFF_MAX_MSEC) : BACKOFF_MIN_MSEC;
	}
	l->due = now() + l->backoff;
}

/* Waits up to msec (< 0: for ever). Whether the launcher shall end. */
static bool wait_for_news(struct launcher *l, int msec)
{
	struct pollfd p[] = {
		{ .fd = l->alive, .events = POLLIN },
		{ .fd = l->signals, .events = POLLIN },
	};
	struct signalfd_siginfo si;

	if (poll(p, ARRAY_SIZE(p), msec) <= 0)
		return false;
	if (p[0].revents)
		return true;
	return p[1].revents && read(l->signals, &si, sizeof(si)) == sizeof(si) &&
	       si.ssi_signo == SIGTERM;
}

static void watch(struct launcher *l)
{
	for (;;) {
		int status, msec = -1;

		if (reap(l, &status)) {
			tell_end(status);
			schedule(l);
		}
		if (!l->engine && now() >= l->due)
			start_engine(l);
		if (!l->engine)
			msec = (int)MAX(l->due - now(), (int64_t)0);
		if (wait_for_news(l, msec))
			return;
	}
}

static void end_engine(struct launcher *l)
{
	int64_t end = now() + MERCY_MSEC;
	int status;

	if (!l->engine)
		return;
	kill(l->engine, SIGTERM);
	l->alive = close_fd(l->alive); /* poll(2) passes over a negative one */
	while (!reap(l, &status)) {
		int64_t left = end - now();

		if (left <= 0) {
			kill(l->engine, SIGKILL);
			waitpid(l->engine, &status, 0);
			return;
		}
		wait_for_news(l, (int)left);
	}
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

/* Keeps the standard three and those named; whoever forked us may hold others. */
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

static void launcher_main(struct launcher *l)
{
	const int keep[] = { l->alive, l->options.listen, l->options.lock };
	sigset_t mask;

	close_others(keep, ARRAY_SIZE(keep));
	/* A session of its own: ^C ends the broker, and the engine after it, in order. */
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
		log_error("The engine's launcher cannot start: %s.", strerror(errno));
		return;
	}
	watch(l);
	end_engine(l);
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
		int err = -errno;

		close_fd(ends[1]);
		return err;
	}
	*ret_pid = pid;
	*ret_alive = ends[1];
	return 0;
}
