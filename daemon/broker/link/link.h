/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection from the broker to the engine, the dumper or the keeper, by the path of its socket.
 * Must not know the protocol, nor when to connect.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

struct link {
	sd_event *loop; /* NULL: never initialised */
	sd_event_source *io;
	struct sockaddr_un address;
	socklen_t address_size;
	int fd; /* < 0: not connected */
};

/* Does not connect. 0; -ENAMETOOLONG: there is nothing to clean up. */
int link_init(struct link *l, sd_event *loop, const char *path);

/* Calls handler whenever the socket is readable. 0; -errno. */
int link_connect(struct link *l, sd_event_io_handler_t handler, void *userdata);

/* Also accepts a link that is not connected. */
void link_close(struct link *l);

/* Accepts a struct of zeroes. */
void link_done(struct link *l);
