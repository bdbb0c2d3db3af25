/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the launcher's two files only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/foreground/launcher.h"
#include "proto/macro.h"

struct launcher;

struct child {
	const char *what, *program;
	int listen;
	int (*prepare)(const struct launcher
			       *l); /* the last step in the child's own process; 0 or -errno */
	bool lasting;		    /* the keeper: started when somebody connects, never ended */
	int found;		    /* lasting: a pidfd of a keeper from an earlier launcher */
	char *argv[8];
	pid_t pid;	      /* 0: not running */
	int64_t started, due; /* ms */
	int64_t backoff;
};

struct launcher {
	struct launcher_options options;
	char uid[16], pid[16]; /* the broker's */
	int alive;	       /* hangs up when the broker is gone */
	int signals;	       /* SIGCHLD, SIGTERM */
	struct child children[3];
};

#define FOREACH_CHILD(c, l) \
	for (struct child *c = (l)->children; c < (l)->children + ARRAY_SIZE((l)->children); c++)

/* Fills in the children's descriptions. */
void children_describe(struct launcher *l);

/* Runs the child's program in the child's own process. Returns on failure, which is logged.
 * launcher: the parent's pid. */
void child_exec(const struct launcher *l, const struct child *c, pid_t launcher);
