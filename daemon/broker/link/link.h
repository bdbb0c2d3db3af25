/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection from the broker to the engine, the dumper or the keeper, at the path of its socket.
 * Must not know what is said there, nor when to connect.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

struct link {
	sd_event *loop; /* NULL: it was never made */
	sd_event_source *io;
	struct sockaddr_un address;
	socklen_t address_size;
	int fd; /* < 0: not connected */
};

/* Does not connect. 0; -ENAMETOOLONG: nothing is to be ended. */
int link_init(struct link *l, sd_event *loop, const char *path);

/* handler is told whenever there is something to read. 0; -errno. */
int link_connect(struct link *l, sd_event_io_handler_t handler, void *userdata);

/* Connected or not. */
void link_close(struct link *l);

/* Accepts one that is all zeroes. */
void link_done(struct link *l);
