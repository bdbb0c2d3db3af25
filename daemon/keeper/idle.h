/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether anybody will come: the listening socket's file may be gone from its directory, and
 * whoever started us may not have come at all. Knows nothing of connections.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct idle {
	int watch; /* inotify: of the directory */
	int timer; /* for whoever comes first */
	struct sockaddr_un address;
	dev_t device;
	ino_t inode;
	bool gone;    /* nobody can come any more */
	bool waiting; /* for the first one */
};

int idle_init(struct idle *idle, int listener);
void idle_done(struct idle *idle);
/* One of the two descriptors can be read. */
void idle_wake(struct idle *idle);
