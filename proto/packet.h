/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves one packet with its file descriptors over a SOCK_SEQPACKET socket. Knows nothing of
 * what is in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

struct pp_fds {
	int fd[PP_FDS_MAX];
	size_t n;
};

/* Closes them all and empties the set. */
void pp_fds_close(struct pp_fds *fds);

/*
 * Sends one packet; the fds stay the caller's. Never raises SIGPIPE.
 * Returns 0; -EAGAIN (non-blocking and full); another -errno of sendmsg(2).
 */
int pp_packet_send(int socket, const void *buf, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one packet into buf. Descriptors arrive CLOEXEC in *ret_fds, the caller's to
 * close. With max_fds == 0 any descriptor is a fault. A packet or control data that did not
 * fit (MSG_TRUNC, MSG_CTRUNC), control data other than SCM_RIGHTS, or too many descriptors:
 * all are closed and -EBADMSG returned. ret_fds may be NULL if max_fds is 0.
 *
 * Returns the packet's size, which is > 0; 0 at the end of the connection; -EAGAIN;
 * -EBADMSG; another -errno of recvmsg(2).
 */
ssize_t pp_packet_receive(int socket, void *buf, size_t cap, size_t max_fds, struct pp_fds *ret_fds,
			  int flags);

/*
 * Whether descriptors come with the next packet. To receive it without room for them drops them
 * here: if one is a file's last reference, the file is closed in our time. Does not wait.
 */
bool pp_packet_brings_fds(int socket);
