/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Accepts connections from a socket's intended peer and from root; turns others away. */
#pragma once

#include <sys/types.h>

struct accept_rule {
	uid_t uid;
	pid_t pid; /* 0: any process of that user */
};

/*
 * Accepts the next connection, CLOEXEC and with these flags of accept4(2). The kernel says who the
 * peer is (SO_PEERCRED). -EPERM: the connection was turned away, which is logged at most once a
 * minute; another -errno.
 */
int accept_from(int listener, const struct accept_rule *rule, int flags);

/* Likewise, but replaces the present connection: a peer that connects anew has given up its earlier
 * requests. */
void accept_instead(int listener, const struct accept_rule *rule, int *connection);
