/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Closes a socket that a stranger filled. An unread packet in a socket may hold the last reference
 * to a file of the sender's choice, and dropping that reference closes the file: a lingering TCP
 * socket sleeps there for as long as the sender likes, and a large memfd takes its time.
 */
#pragma once

#include <stdbool.h>

/* Refuses descriptors on this socket and on those that it accepts: senders get EPERM. False: the
 * kernel cannot do that (SO_PASSRIGHTS is new in Linux 6.16). */
bool dispose_keep_out(int socket);

/*
 * Closes fd. Its queued files are dropped by an ending thread, which no lingering socket can delay.
 * An empty socket needs this too: before Linux 6.8, closing a socket also collects the garbage that
 * others made of theirs. Does not sleep. Returns -EBADF, to store where fd was.
 */
int dispose_fd(int fd);
