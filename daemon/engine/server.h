/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine's loop: takes the broker's orders, in turn, and answers them. */
#ifndef PP_SERVER_H
#define PP_SERVER_H

#include <sys/types.h>

/* Whom to obey, but for root. */
struct broker {
	uid_t uid;
	pid_t pid; /* it alone of that user's; 0: any, since it may be started anew */
};

/*
 * Serves orders on connections to `listener` from the broker (or root) until SIGTERM or SIGINT
 * arrives by the signalfd `signals`. One connection at a time: a new one replaces the old,
 * whose broker is gone. 0 or -errno.
 */
int serve(int listener, int signals, const struct broker *broker);

#endif
