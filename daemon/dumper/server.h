/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes the broker's jobs, one at a time, and sends the copies back. */
#pragma once

#include <sys/types.h>

/*
 * Serves the listening SOCK_SEQPACKET socket until something fails for good: -errno. The socket is
 * the broker's alone: that process of our user (0: any), or root.
 */
int serve_copies(int listener, pid_t broker);
