/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher: where there is no systemd, a small process that stays root and does nothing
 * but run the engine and the dumper, each again when it dies, until the broker is gone; and the
 * keeper, when somebody connects to its socket. That one goes on without the launcher.
 */
#pragma once

#include <sys/types.h>

struct launcher_options {
	const char *engine, *dumper, *keeper; /* programs */
	const char *instance;		      /* "": the system's own */
	uid_t broker; /* whose orders the engine takes, and whom dumper and keeper run as */
	gid_t group;  /* theirs */
	int engine_listen, dumper_listen; /* their listening sockets */
	int keeper_listen;		  /* or, where one runs already, which has its socket: */
	int keeper_found;		  /* a pidfd of it; < 0: none does */
	int lock; /* kept open: the instance is not free while the launcher lives */
};

/*
 * Forks it. *ret_alive is ours and CLOEXEC: when it is closed, by us or by our death, the
 * launcher ends its children and itself. Signals must be blocked as the broker wants them.
 * 0; -errno.
 */
int launcher_start(const struct launcher_options *options, pid_t *ret_pid, int *ret_alive);
