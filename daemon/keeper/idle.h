/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Says whether anybody can still connect: the listening socket's file may be gone from its
 * directory, or the process that started the keeper may never have connected. Knows nothing of
 * connections.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct idle {
	int watch; /* inotify, on the directory */
	int timer; /* for the first connection */
	struct sockaddr_un address;
	dev_t device;
	ino_t inode;
	bool gone;    /* nobody can connect any more */
	bool waiting; /* for the first connection */
};

int idle_init(struct idle *idle, int listener);
void idle_done(struct idle *idle);
/* Call when one of the two descriptors is readable. */
void idle_wake(struct idle *idle);
