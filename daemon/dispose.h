/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Closing what a stranger filled. A packet that lies unread in a socket may hold the last reference
 * to a file of its sender's choice, and whoever drops that reference closes the file: a TCP socket
 * that lingers sleeps in there for as long as the sender likes, a large memfd takes its time.
 */
#pragma once

#include <stdbool.h>

/* Lets no descriptors into this socket, nor into those that it accepts: their senders get EPERM.
 * False: the kernel cannot (SO_PASSRIGHTS is of Linux 6.16). */
bool dispose_keep_out(int socket);

/*
 * Closes fd; what lay in it is dropped in the time of a thread that is ending, which no socket makes
 * linger. Also if nothing lay in it: before Linux 6.8 whoever closes a socket collects the garbage
 * that others have made of theirs. Does not sleep. Returns -EBADF, for the place where fd was.
 */
int dispose_fd(int fd);
