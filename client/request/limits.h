/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A list of limits, from messages. Knows neither sockets nor the meaning of a limit. */
#pragma once

#include "client/perfpersist.h"
#include "proto/protocol.h"

/* No daemon has as many namespaces and users: a longer list would never end. */
#define CLIENT_LIMITS_MAX (1U << 20)

/* v is one array for free(3). */
struct client_limits {
	struct perfpersist_limit *v;
	size_t n, cap;
};

void client_limits_done(struct client_limits *l);
int client_limits_add(struct client_limits *l, const struct pp_msg_limit *m);
