/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A command that runs during a recording. Its process exists at once and starts the command later,
 * so that the recording misses nothing of it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct workload {
	pid_t pid;  /* 0: none, or it has ended */
	int go;	    /* the start byte goes here */
	int status; /* as of waitpid(2) */
	bool ended;
	char **command;
};
#define WORKLOAD_NONE ((struct workload){ .go = -1 })

/* command NULL: none; all of these then do nothing. Call it before signals_catch(). Returns an exit
 * code. */
int workload_prepare(struct workload *w, char **command);

/* Starts it. Returns an exit code: 126 or 127 if it cannot run; has complained then. */
int workload_start(struct workload *w);

/* Whether there was a command and it has ended. */
bool workload_ended(struct workload *w);

/* Starts it and waits for its end. Returns its exit code. */
int workload_run(struct workload *w);

/* A command that has not started never does; one that has goes on. */
void workload_done(struct workload *w);
