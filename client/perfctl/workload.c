// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/workload.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client/perfctl/perfctl.h"

/* In the child: waits for the start byte, and sends an errno value if it cannot run the command. */
static _Noreturn void become(int go, char **command)
{
	int r;
	char word;

	if (read(go, &word, 1) != 1)
		_exit(EXIT_FAILED);
	execvp(command[0], command);
	r = errno;
	if (write(go, &r, sizeof(r)) < 0)
		_exit(EXIT_FAILED);
	_exit(r == ENOENT ? 127 : 126);
}

int workload_prepare(struct workload *w, char **command)
{
	int pair[2];

	if (!command)
		return EXIT_OK;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		complain("cannot run %s: %s", command[0], strerror(errno));
		return EXIT_FAILED;
	}
	w->command = command;
	w->pid = fork();
	if (w->pid == 0) {
		close(pair[0]);
		become(pair[1], command);
	}
	close(pair[1]);
	w->go = pair[0];
	if (w->pid > 0)
		return EXIT_OK;
	w->pid = 0;
	complain("cannot run %s: %s", command[0], strerror(errno));
	return EXIT_FAILED;
}

int workload_start(struct workload *w)
{
	int r = 0;

	if (!w->command)
		return EXIT_OK;
	/* A successful exec closes the other end. */
	if (write(w->go, "", 1) == 1 && read(w->go, &r, sizeof(r)) != sizeof(r))
		return EXIT_OK;
	complain("cannot run %s: %s", w->command[0], strerror(r));
	return r == ENOENT ? 127 : 126;
}

bool workload_ended(struct workload *w)
{
	if (w->pid && waitpid(w->pid, &w->status, WNOHANG) == w->pid) {
		w->pid = 0;
		w->ended = true;
	}
	return w->ended;
}

int workload_run(struct workload *w)
{
	int r = workload_start(w);

	if (r != EXIT_OK || !w->pid)
		return r;
	while (waitpid(w->pid, &w->status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	return WIFEXITED(w->status) ? WEXITSTATUS(w->status) : 128 + WTERMSIG(w->status);
}

void workload_done(struct workload *w)
{
	close_fd(w->go);
	w->go = -1;
	/* A child that gets no start byte ends at once. */
	if (w->pid)
		waitpid(w->pid, &w->status, WNOHANG);
}
