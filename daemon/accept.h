/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes connections from those whom a socket is for, and from root; others are turned away. */
#pragma once

#include <sys/types.h>

struct accept_rule {
	uid_t uid;
	pid_t pid; /* 0: any process of that user */
};

/*
 * The next connection, CLOEXEC and with these flags of accept4(2); who it is the kernel says
 * (SO_PEERCRED). -EPERM: it was turned away, which the log is told once a minute; -errno.
 */
int accept_from(int listener, const struct accept_rule *rule, int flags);

/* The same in place of the connection that there is: who connects anew has given up what was asked
 * before. */
void accept_instead(int listener, const struct accept_rule *rule, int *connection);
