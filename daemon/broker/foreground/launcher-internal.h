/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launcher and its children, for its two files alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/foreground/launcher.h"
#include "proto/macro.h"

struct launcher;

struct child {
	const char *what, *program;
	int listen;
	int (*prepare)(const struct launcher *l); /* in its own process, at last; 0 or -errno */
	bool lasting; /* started when somebody connects, and never ended: the keeper */
	int found;    /* lasting: a pidfd of one that an earlier launcher has started */
	char *argv[8];
	pid_t pid;	      /* 0: none */
	int64_t started, due; /* ms */
	int64_t backoff;
};

struct launcher {
	struct launcher_options options;
	char uid[16], pid[16]; /* of the broker */
	int alive;	       /* hangs up when the broker is gone */
	int signals;	       /* SIGCHLD, SIGTERM */
	struct child children[3];
};

#define FOREACH_CHILD(c, l) \
	for (struct child *c = (l)->children; c < (l)->children + ARRAY_SIZE((l)->children); c++)

/* Fills in who they are. */
void children_describe(struct launcher *l);

/* In the child's own process: becomes its program. Returns if it cannot, which is logged. launcher:
 * the parent's pid. */
void child_exec(const struct launcher *l, const struct child *c, pid_t launcher);
