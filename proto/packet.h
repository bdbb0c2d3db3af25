/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moves one packet with its file descriptors over a SOCK_SEQPACKET socket. Does not know its
 * contents. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

struct pp_fds {
	int fd[PP_FDS_MAX];
	size_t n;
};

/* Closes all descriptors and empties the set. */
void pp_fds_close(struct pp_fds *fds);

/*
 * Sends one packet; the caller keeps the fds. Never raises SIGPIPE.
 *
 * Returns 0; -EAGAIN (non-blocking and full); another -errno of sendmsg(2).
 */
int pp_packet_send(int socket, const void *buf, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one packet into buf. Descriptors arrive CLOEXEC in *ret_fds; the caller closes them.
 * With max_fds == 0 any descriptor is an error. If the packet or its control data did not fit
 * (MSG_TRUNC, MSG_CTRUNC), or has control data other than SCM_RIGHTS or too many descriptors,
 * closes all of them and returns -EBADMSG. ret_fds may be NULL if max_fds is 0.
 *
 * Returns the packet's size, which is > 0; 0 at the end of the connection; -EAGAIN; -EBADMSG;
 * -EMFILE: we have no place for its descriptors, and the packet is gone; another -errno of recvmsg(2).
 */
ssize_t pp_packet_receive(int socket, void *buf, size_t cap, size_t max_fds, struct pp_fds *ret_fds,
			  int flags);

/* Whether descriptors come with the next packet. Receiving it without room for them drops them
 * here: if one is a file's last reference, closing the file takes our time. Does not wait. */
bool pp_packet_brings_fds(int socket);
