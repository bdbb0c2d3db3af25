/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits, gathered one by one from messages. Knows neither sockets nor what a limit does. */
#pragma once

#include "client/perfpersist.h"
#include "proto/protocol.h"

/* More lines than any daemon has namespaces and users: it would never end. */
#define CLIENT_LIMITS_MAX (1U << 20)

/* v is one array for free(3). */
struct client_limits {
	struct perfpersist_limit *v;
	size_t n, cap;
};

void client_limits_done(struct client_limits *l);
int client_limits_add(struct client_limits *l, const struct pp_msg_limit *m);
