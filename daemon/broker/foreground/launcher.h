/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher: without systemd, a small process that stays root. It runs the engine and the
 * dumper, and restarts each when it dies, until the broker is gone. It starts the keeper when
 * somebody connects to its socket; the keeper outlives the launcher.
 */
#pragma once

#include <sys/types.h>

struct launcher_options {
	const char *engine, *dumper, *keeper; /* programs */
	const char *instance;		      /* "": the default instance */
	uid_t broker; /* the engine obeys this user; dumper and keeper run as it */
	gid_t group;
	int engine_listen, dumper_listen; /* their listening sockets */
	int keeper_listen;		  /* < 0 if a keeper runs already and has its own socket */
	int keeper_found;		  /* a pidfd of it; < 0: none runs */
	int lock; /* kept open: the instance is taken while the launcher lives */
};

/*
 * Forks the launcher. *ret_alive is ours and CLOEXEC: when it closes, by us or by our death, the
 * launcher ends its children and itself. Signals must be blocked as the broker wants them. 0;
 * -errno.
 */
int launcher_start(const struct launcher_options *options, pid_t *ret_pid, int *ret_alive);
