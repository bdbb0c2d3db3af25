/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The manager owns the event loop and everything on it, and reports the state to systemd. When it
 * is created, the process has dropped all privileges that it does not need.
 */
#pragma once

#include <sys/types.h>

#include "daemon/broker/config/config.h"

struct manager;

struct manager_options {
	const struct config *config; /* resolved; borrowed until manager_new returns */
	const char *named;	     /* the argument of --config, or NULL; likewise */
	const char *instance;	     /* "": the default instance */
	int control;		     /* the listening socket; the manager owns it once it exists */
	pid_t launcher;		     /* our child that runs the engine; 0: systemd runs it */
};

int manager_new(const struct manager_options *options, struct manager **ret);

/* Runs until SIGTERM or SIGINT, which must be blocked. 0; -errno (logged). */
int manager_run(struct manager *m);

/* Frees everything; asserts that nothing is left. NULL is accepted. */
void manager_free(struct manager *m);
void cleanup_manager(struct manager **m);
