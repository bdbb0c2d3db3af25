/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real dumper's loop in a child process, listening on a socket of the test's choice. */
#pragma once

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "daemon/dumper/server.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

struct dumper_process {
	struct sockaddr_un address;
	int listen;
	pid_t pid;
};

static inline void dumper_process_listen(struct dumper_process *d, const char *path)
{
	*d = (struct dumper_process){ .address.sun_family = AF_UNIX };
	ck_assert_uint_lt(strlen(path), sizeof(d->address.sun_path));
	memcpy(d->address.sun_path, path, strlen(path) + 1);
	d->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(d->listen, (struct sockaddr *)&d->address, sizeof(d->address)), 0);
	ck_assert_int_eq(listen(d->listen, 8), 0);
}

static inline void dumper_process_start(struct dumper_process *d)
{
	d->pid = fork();
	ck_assert_int_ge(d->pid, 0);
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(serve_copies(d->listen, 0) < 0);
	}
}

static inline void dumper_process_kill(struct dumper_process *d)
{
	kill(d->pid, SIGKILL);
	ck_assert_int_eq(waitpid(d->pid, NULL, 0), d->pid);
	d->pid = 0;
}

static inline void dumper_process_done(struct dumper_process *d)
{
	if (d->pid)
		dumper_process_kill(d);
	close_fd(d->listen);
	unlink(d->address.sun_path);
}
