// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs engine and dumper, and nothing else. Takes no orders, reads nothing that anyone sends. */
#include "daemon/broker/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/broker/dropins.h"
#include "daemon/broker/privileges.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define HASTY_MSEC 1000	      /* a child that dies sooner is started again later */
#define BACKOFF_MIN_MSEC 100  /* … by this, */
#define BACKOFF_MAX_MSEC 5000 /* … doubled each time up to this */
#define MERCY_MSEC 5000	      /* from SIGTERM to SIGKILL; they recover from either */

struct launcher;

struct child {
	const char *what, *program;
	int listen;
	int (*prepare)(const struct launcher *l); /* in its own process, at last; 0 or -errno */
	char *argv[6];
	pid_t pid;	      /* 0: none */
	int64_t started, due; /* ms */
	int64_t backoff;
};

struct launcher {
	struct launcher_options options;
	char uid[16];
	int alive;   /* hangs up when the broker is gone */
	int signals; /* SIGCHLD, SIGTERM */
	struct child children[2];
};

#define FOREACH_CHILD(c, l) \
	for (struct child *c = (l)->children; c < (l)->children + ARRAY_SIZE((l)->children); c++)

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ── who they are ───────────────────────────────────────────────────────────────────────── */

static int stay_root(const struct launcher *l _unused_)
{
	return 0;
}

static int give_up_root(const struct launcher *l)
{
	return privileges_drop(l->options.broker, l->options.group);
}

static void describe_children(struct launcher *l)
{
	const struct launcher_options *o = &l->options;
	struct child *engine = &l->children[0], *dumper = &l->children[1];
	unsigned n = 0;

	*engine = (struct child){
		.what = "engine",
		.program = o->engine,
		.listen = o->engine_listen,
		.prepare = stay_root,
	};
	*dumper = (struct child){
		.what = "dumper",
		.program = o->dumper,
		.listen = o->dumper_listen,
		.prepare = give_up_root,
	};
	FOREACH_CHILD(c, l)
	{
		c->argv[0] = (char *)c->program;
		n = 1;
		if (*o->instance) {
			c->argv[n++] = (char *)"--instance";
			c->argv[n++] = (char *)o->instance;
		}
		if (c != engine)
			continue;
		c->argv[n++] = (char *)"--broker-uid";
		c->argv[n++] = l->uid;
	}
	snprintf(l->uid, sizeof(l->uid), "%u", o->broker);
}

/* ── a child's own process ──────────────────────────────────────────────────────────────── */

/* The socket becomes descriptor 3, as systemd would pass it; all others close. */
static int place_socket(int fd)
{
	if (fd == 3)
		return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
	return dup2(fd, 3) < 0 ? -errno : 0;
}

static void exec_child(const struct launcher *l, const struct child *c, pid_t launcher)
{
	/* Opened by root: where the program lies its user may not be able to go. Above the socket's
	 * place, which is taken next. */
	int program = fcntl(open(c->program, O_PATH | O_CLOEXEC), F_DUPFD_CLOEXEC, 4);
	sigset_t none;
	char pid[16];
	int err;

	if (program < 0 || place_socket(c->listen) < 0) {
		log_error("Cannot run the %s %s: %s.", c->what, c->program, strerror(errno));
		return;
	}
	err = c->prepare(l);
	if (err < 0) {
		log_error("Cannot give up root's rights for the %s: %s.", c->what, strerror(-err));
		return;
	}
	/* Without its launcher it would run on, and keep the next one from its work. (Becoming
	 * another user clears this, so that it comes after.) */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != launcher)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	execveat(program, "", c->argv, environ, AT_EMPTY_PATH);
	/* A script: its interpreter could not open what closes now, and the kernel says so by this.
	 */
	if (errno == ENOENT)
		execv(c->program, c->argv);
	log_error("Cannot run the %s %s: %s.", c->what, c->program, strerror(errno));
}

static void start_child(struct launcher *l, struct child *c)
{
	pid_t launcher = getpid();
	pid_t pid = fork();

	if (pid == 0) {
		exec_child(l, c, launcher);
		_exit(127);
	}
	c->started = now();
	if (pid < 0) {
		log_error("Cannot start the %s: %s.", c->what, strerror(errno));
		c->due = c->started + BACKOFF_MAX_MSEC;
		return;
	}
	c->pid = pid;
}

/* ── watching them ──────────────────────────────────────────────────────────────────────── */

static void tell_end(const struct child *c, int status)
{
	if (WIFSIGNALED(status))
		log_warning("The %s was ended by signal %d (%s); it is started again.", c->what,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_warning("The %s ended with status %d; it is started again.", c->what,
			    WEXITSTATUS(status));
}

/* Whether it has ended. */
static bool reap(struct child *c, int *ret_status)
{
	if (!c->pid || waitpid(c->pid, ret_status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	return true;
}

static void schedule(struct child *c)
{
	if (now() - c->started >= HASTY_MSEC) {
		c->backoff = 0;
	} else {
		c->backoff = c->backoff ? MIN(c->backoff * 2, BACKOFF_MAX_MSEC) : BACKOFF_MIN_MSEC;
	}
	c->due = now() + c->backoff;
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

/* Looks after one of them. Milliseconds until that is to be done again; -1: it tells itself. */
static int look_after(struct launcher *l, struct child *c)
{
	int status;

	if (reap(c, &status)) {
		tell_end(c, status);
		schedule(c);
	}
	if (!c->pid && now() >= c->due)
		start_child(l, c);
	return c->pid ? -1 : (int)MAX(c->due - now(), (int64_t)0);
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

static bool all_ended(struct launcher *l)
{
	bool ended = true;
	int status;

	FOREACH_CHILD(c, l)
	{
		reap(c, &status);
		ended &= c->pid == 0;
	}
	return ended;
}

static void end_children(struct launcher *l)
{
	int64_t end = now() + MERCY_MSEC;
	int status;

	FOREACH_CHILD(c, l)
	{
		if (c->pid)
			kill(c->pid, SIGTERM);
	}
	l->alive = close_fd(l->alive); /* poll(2) passes over a negative one */
	while (!all_ended(l) && now() < end)
		wait_for_news(l, (int)MAX(end - now(), (int64_t)0));
	FOREACH_CHILD(c, l)
	{
		if (!c->pid)
			continue;
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
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

/* Of what the broker has written to be there after a reboot, nothing is left: no folder, then. */
static void remove_empty_state(const struct launcher *l)
{
	char path[PATH_MAX];

	if (dropin_state_place(l->options.instance, "/events.d", path, sizeof(path)) < 0 ||
	    rmdir(path) < 0)
		return;
	if (dropin_state_place(l->options.instance, "", path, sizeof(path)) == 0)
		rmdir(path);
}

static void launcher_main(struct launcher *l)
{
	const struct launcher_options *o = &l->options;
	const int keep[] = { l->alive, o->engine_listen, o->dumper_listen, o->lock };
	sigset_t mask;

	close_others(keep, ARRAY_SIZE(keep));
	/* A session of its own: ^C ends the broker, and the others after it, in order. */
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
		log_error("The launcher of engine and dumper cannot start: %s.", strerror(errno));
		return;
	}
	describe_children(l);
	watch(l);
	end_children(l);
	remove_empty_state(l);
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
