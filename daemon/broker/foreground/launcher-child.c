// SPDX-License-Identifier: LGPL-2.1-or-later
/* The launcher's children: their descriptions, and the steps each takes in its own process until it
 * runs its program. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon/broker/foreground/launcher-internal.h"
#include "daemon/broker/privileges.h"
#include "daemon/log.h"

/* ── who they are ───────────────────────────────────────────────────────────────────────── */

static int stay_root(const struct launcher *l _unused_)
{
	return 0;
}

static int give_up_root(const struct launcher *l)
{
	return privileges_drop(l->options.broker, l->options.group);
}

static void raise_limit(int which)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, limit;

	if (which == RLIMIT_MEMLOCK && setrlimit(which, &all) == 0)
		return;
	if (getrlimit(which, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(which, &limit);
}

/* A process that waits for the end of a pipe, or owns the terminal, must not wait for the keeper. A
 * file may stay: it takes the keeper's messages. */
static int leave_streams(void)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	return dup2(null, STDERR_FILENO) < 0 ? -errno : 0;
}

/* The keeper outlives all of us and holds nothing of ours: no session, folder or terminal. The
 * kernel counts rings against its user's locked-memory limit. */
static int stand_alone(const struct launcher *l)
{
	int r;

	raise_limit(RLIMIT_MEMLOCK);
	raise_limit(RLIMIT_NOFILE);
	setsid();
	r = chdir("/") < 0 ? -errno : leave_streams();
	return r < 0 ? r : give_up_root(l);
}

static void describe_child(struct launcher *l, struct child *c, const char *const *options)
{
	unsigned n = 0;

	c->argv[n++] = (char *)c->program;
	if (*l->options.instance) {
		c->argv[n++] = (char *)"--instance";
		c->argv[n++] = (char *)l->options.instance;
	}
	while (*options)
		c->argv[n++] = (char *)*options++;
}

void children_describe(struct launcher *l)
{
	const struct launcher_options *o = &l->options;
	struct child *engine = &l->children[0], *dumper = &l->children[1],
		     *keeper = &l->children[2];

	*engine = (struct child){
		.what = "engine",
		.program = o->engine,
		.listen = o->engine_listen,
		.prepare = stay_root,
		.found = -EBADF,
	};
	*dumper = (struct child){
		.what = "dumper",
		.program = o->dumper,
		.listen = o->dumper_listen,
		.prepare = give_up_root,
		.found = -EBADF,
	};
	*keeper = (struct child){
		.what = "keeper",
		.program = o->keeper,
		.listen = o->keeper_listen,
		.prepare = stand_alone,
		.lasting = true,
		.found = o->keeper_found,
	};
	snprintf(l->uid, sizeof(l->uid), "%u", o->broker);
	snprintf(l->pid, sizeof(l->pid), "%d", (int)getppid());
	/* We end with the broker, so no other process of its user can have this pid. */
	describe_child(
		l, engine,
		(const char *const[]){ "--broker-uid", l->uid, "--broker-pid", l->pid, NULL });
	describe_child(l, dumper, (const char *const[]){ "--broker-pid", l->pid, NULL });
	describe_child(l, keeper, (const char *const[]){ "--exit-idle", NULL });
}

/* ── a child's own process ──────────────────────────────────────────────────────────────── */

/* Makes the socket descriptor 3, as systemd passes it, and closes all others. */
static int place_socket(int fd)
{
	if (fd == 3)
		return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
	return dup2(fd, 3) < 0 ? -errno : 0;
}

void child_exec(const struct launcher *l, const struct child *c, pid_t launcher)
{
	/* Opened as root: the child's user may not be able to reach the program. The descriptor
	 * stays above the socket's number, which is taken next. */
	int program = fcntl(open(c->program, O_PATH | O_CLOEXEC), F_DUPFD_CLOEXEC, 4);
	sigset_t none;
	char pid[16];
	int r;

	if (program < 0 || place_socket(c->listen) < 0) {
		log_error("Cannot run the %s %s: %s.", c->what, c->program, strerror(errno));
		return;
	}
	r = c->prepare(l);
	if (r < 0) {
		log_error("Cannot set up the process of the %s: %s.", c->what, strerror(-r));
		return;
	}
	/* Without its launcher the child would run on and block its successor. (Becoming another
	 * user clears this setting, so it comes last.) */
	if (!c->lasting && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != launcher))
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	execveat(program, "", c->argv, environ, AT_EMPTY_PATH);
	/* The program is a script: its interpreter cannot open the descriptor that closes on exec,
	 * and the kernel reports ENOENT. */
	if (errno == ENOENT)
		execv(c->program, c->argv);
	log_error("Cannot run the %s %s: %s.", c->what, c->program, strerror(errno));
}
