/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control socket: accepts connections and turns them into peers. Until it is started they wait
 * in the socket's queue.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/edge/peer.h"

struct listener {
	struct peers *peers;
	int fd;
	sd_event_source *io, *pause;
};

/* Takes over the listening socket. 0; -errno, and fd stays the caller's. */
int listener_init(struct listener *l, struct peers *peers, int fd);
void listener_start(struct listener *l);
/* Accepts a half-made listener; an empty one has the fd -EBADF. */
void listener_done(struct listener *l);
