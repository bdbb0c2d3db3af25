/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small service manager: owns the instance's three sockets and runs broker, engine and dumper on
 * them as systemd would, but restarts each at once. So hundreds of kills take only the daemon's
 * recovery time: its own launcher waits longer after each. Knows nothing of events.
 */
#pragma once

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

enum service { ENGINE, DUMPER, BROKER, SERVICES };

struct services {
	const char *instance, *build, *config, *uid; /* uid: the broker's, as text */
	int listen[SERVICES];
	pid_t pid[SERVICES];
};

static const struct {
	const char *program, *socket;
	mode_t mode;
} service_kinds[SERVICES] = {
	[ENGINE] = { "perfpersist-engine", "/engine", 0600 },
	[DUMPER] = { "perfpersist-dumper", "/dumper", 0600 },
	[BROKER] = { "perfpersistd", "/control", 0666 },
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

/* The dumper has the broker's uid, which may have no access to the build, so the program is opened
 * before the change of uid. */
static inline void services_exec(const struct services *s, enum service which, char *const argv[])
{
	/* The socket's descriptor may be 3 itself, and then dup3 would fail. */
	int fd = fcntl(s->listen[which], F_DUPFD_CLOEXEC, 10);
	int program = open(argv[0], O_RDONLY | O_CLOEXEC);
	uid_t uid = atoi(s->uid);
	sigset_t none;
	char pid[16];

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	if (program == 3)
		program = fcntl(program, F_DUPFD_CLOEXEC, 10);
	if (dup3(fd, 3, 0) >= 0 && close_range(4, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
		if (which != DUMPER)
			execv(argv[0], argv);
		else if (setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0 &&
			 prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) /* setresuid clears it */
			fexecve(program, argv, environ);
	}
	fprintf(stderr, "cannot run %s: %m\n", argv[0]);
	_exit(127);
}

/* gate: the child waits for a byte there before it executes the program; < 0: at once. */
static inline pid_t services_spawn(const struct services *s, enum service which, int gate)
{
	char program[PATH_MAX], byte;
	char *argv[] = { program,
			 (char *)"--instance",
			 (char *)s->instance,
			 (char *)(which == BROKER ? "--config" : "--broker-uid"),
			 (char *)(which == BROKER ? s->config : s->uid),
			 NULL };
	pid_t pid;

	if (which == DUMPER)
		argv[3] = NULL;
	snprintf(program, sizeof(program), "%s/%s", s->build, service_kinds[which].program);
	pid = fork();
	if (pid < 0)
		die("cannot fork: %m");
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(127);
		if (gate >= 0 && read(gate, &byte, 1) < 0)
			_exit(127);
		services_exec(s, which, argv);
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
	for (enum service i = 0; i < SERVICES; i++)
		s->listen[i] = services_listen(s, service_kinds[i].socket, service_kinds[i].mode);
	for (enum service i = 0; i < SERVICES; i++)
		s->pid[i] = services_spawn(s, i, -1);
}

/* Which service a process is; SERVICES: none. */
static inline enum service services_which(const struct services *s, pid_t pid)
{
	enum service i = 0;

	while (i < SERVICES && s->pid[i] != pid)
		i++;
	return i;
}

/* No service may have died on its own; the reaper of a dead engine is another process's child. */
static inline void services_check(struct services *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		enum service i = services_which(s, pid);

		if (i < SERVICES)
			die("%s ended by itself with status 0x%x", service_kinds[i].program,
			    status);
	}
}

/* The dumper, which keeps nothing, exits at once on SIGTERM. */
static inline void services_stop(struct services *s)
{
	for (enum service i = SERVICES; i-- > 0;) {
		int status;

		kill(s->pid[i], SIGTERM);
		if (waitpid(s->pid[i], &status, 0) != s->pid[i] ||
		    (status != 0 &&
		     !(i == DUMPER && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)))
			die("%s ended with status 0x%x on SIGTERM", service_kinds[i].program,
			    status);
		s->pid[i] = 0;
	}
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
