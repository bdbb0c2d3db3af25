/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher: where there is no systemd, a small process that stays root and does nothing
 * but run the engine and the dumper, each again when it dies, until the broker is gone.
 */
#ifndef PP_BROKER_LAUNCHER_H
#define PP_BROKER_LAUNCHER_H

#include <sys/types.h>

struct launcher_options {
	const char *engine, *dumper; /* programs */
	const char *instance;	     /* "": the system's own */
	uid_t broker;	   /* whose orders the engine takes, and whom the dumper runs as */
	gid_t group;	   /* the dumper's */
	int engine_listen; /* their listening sockets */
	int dumper_listen;
	int lock; /* kept open: the instance is not free while the launcher lives */
};

/*
 * Forks it. *ret_alive is ours and CLOEXEC: when it is closed, by us or by our death, the
 * launcher ends its children and itself. Signals must be blocked as the broker wants them.
 * 0; -errno.
 */
int launcher_start(const struct launcher_options *options, pid_t *ret_pid, int *ret_alive);

#endif
