/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A command that is run while something is recorded: it is there at once, and begins when told, so
 * that nothing of it is missed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct workload {
	pid_t pid;  /* 0: there is none, or it has ended */
	int go;	    /* it begins when something comes */
	int status; /* of its end; exec_error: errno, if it could not be run */
	bool ended;
	char **command;
};
#define WORKLOAD_NONE ((struct workload){ .go = -1 })

/* command NULL: none; all of these then do nothing. Before signals are caught. An exit code. */
int workload_prepare(struct workload *w, char **command);

/* Begins it. An exit code: 126 or 127, if it cannot be run; has complained then. */
int workload_start(struct workload *w);

/* Whether it was there and has ended. */
bool workload_ended(struct workload *w);

/* Begins it and waits for its end. An exit code: its own. */
int workload_run(struct workload *w);

/* One that has not begun never does; one that has goes on. */
void workload_done(struct workload *w);
