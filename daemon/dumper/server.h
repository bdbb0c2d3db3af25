/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes the broker's jobs, one at a time, and sends back the copies. */
#pragma once

#include <sys/types.h>

/* Serves the listening SOCK_SEQPACKET socket until a permanent failure: -errno. Only the broker
 * (this process of our user; 0: any process) and root may connect. */
int serve_copies(int listener, pid_t broker);
