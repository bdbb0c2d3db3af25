// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Replaces systemd as the listener of NOTIFY_SOCKET: prints each notification of a daemon as a line
 * "PID KEY=VALUE". After READY=1 it runs a program before it listens on, so that the program's
 * output shows the state at that time.
 *
 * Usage: notify-listen SOCKET [PROGRAM [ARGUMENT]...]
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "proto/macro.h"

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(path, 0777) < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -1;
	return fd;
}

static pid_t sender(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct ucred creds = { 0 };

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&creds, CMSG_DATA(c), sizeof(creds));
	return creds.pid;
}

static void run(char **command)
{
	pid_t pid = fork();

	if (pid == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* Returns whether the daemon sent READY=1. */
static bool print(char *text, pid_t pid)
{
	bool ready = false;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (*line)
			printf("%d %s\n", (int)pid, line);
		ready |= !strcmp(line, "READY=1");
	}
	fflush(stdout);
	return ready;
}

int main(int argc, char **argv)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	char text[4096];
	int fd = argc < 2 ? -1 : listen_at(argv[1]);

	if (fd < 0) {
		fprintf(stderr, "notify-listen: cannot listen at %s: %m\n",
			argc < 2 ? "?" : argv[1]);
		return 1;
	}
	for (;;) {
		struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) - 1 };
		struct msghdr m = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes),
		};
		ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);

		if (n < 0)
			return 1;
		text[n] = '\0';
		if (print(text, sender(&m)) && argc > 2)
			run(argv + 2);
	}
}
