/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small service manager: owns the instance's two sockets and runs broker and engine on them
 * as systemd would, each started again at once when it has died. So that hundreds of deaths
 * take no longer than the daemon takes to recover: the daemon's own launcher waits longer each
 * time. Knows nothing of events.
 */
#ifndef PP_TEST_SERVICES_H
#define PP_TEST_SERVICES_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "proto/macro.h"
#include "proto/places.h"

struct services {
	const char *instance, *build, *config, *uid; /* uid: the broker's, as text */
	int control, orders;			     /* listening */
	pid_t broker, engine;
};

__attribute__((noreturn)) _printf_(1, 2) static inline void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fflush(stdout);
	fprintf(stderr, "failed: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static inline int services_listen(const struct services *s, const char *leaf, mode_t mode)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0 || pp_place(s->instance, leaf, address.sun_path, sizeof(address.sun_path)) < 0)
		die("no socket for %s: %m", leaf);
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chown(address.sun_path, atoi(s->uid), -1) < 0 || chmod(address.sun_path, mode) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		die("cannot listen on %s: %m", address.sun_path);
	return fd;
}

static inline void services_exec(int fd, char *const argv[])
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	if (dup3(fd, 3, 0) >= 0) {
		close_range(4, ~0U, 0);
		execv(argv[0], argv);
	}
	fprintf(stderr, "cannot run %s: %m\n", argv[0]);
	_exit(127);
}

/* gate: the child waits for a byte there before it becomes the program; < 0: at once. */
static inline pid_t services_spawn(const struct services *s, bool broker, int gate)
{
	char program[PATH_MAX], byte;
	char *argv[] = { program,
			 (char *)"--instance",
			 (char *)s->instance,
			 (char *)(broker ? "--config" : "--broker-uid"),
			 (char *)(broker ? s->config : s->uid),
			 NULL };
	int fd = broker ? s->control : s->orders;
	pid_t pid;

	snprintf(program, sizeof(program), "%s/%s", s->build,
		 broker ? "perfpersistd" : "perfpersist-engine");
	pid = fork();
	if (pid < 0)
		die("cannot fork: %m");
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(127);
		if (gate >= 0 && read(gate, &byte, 1) < 0)
			_exit(127);
		/* The descriptor itself may be 3, and then dup3 would refuse. */
		services_exec(fcntl(fd, F_DUPFD_CLOEXEC, 10), argv);
	}
	return pid;
}

static inline void services_start(struct services *s)
{
	char run[PATH_MAX];

	if (pp_place(s->instance, "", run, sizeof(run)) < 0 ||
	    (mkdir(run, 0755) < 0 && errno != EEXIST))
		die("no run directory for '%s': %m", s->instance);
	chmod(run, 0755);
	s->control = services_listen(s, "/control", 0666);
	s->orders = services_listen(s, "/engine", 0600);
	s->engine = services_spawn(s, false, -1);
	s->broker = services_spawn(s, true, -1);
}

/* Says that neither of the two may have died unasked; a reaper left behind by a dead engine is
 * somebody else's child. */
static inline void services_check(struct services *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		if (pid == s->broker || pid == s->engine)
			die("the %s ended by itself with status 0x%x",
			    pid == s->broker ? "broker" : "engine", status);
}

static inline void services_stop(struct services *s)
{
	pid_t pids[] = { s->broker, s->engine };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		int status;

		kill(pids[i], SIGTERM);
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			die("the %s ended with status 0x%x on SIGTERM", i ? "engine" : "broker",
			    status);
	}
	s->broker = s->engine = 0;
}

/* How many descriptors a process holds. */
static inline unsigned count_fds(pid_t pid)
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[64];
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	return n ? n - 2 : 0;
}

#endif
