/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests: what each operation of the protocol does. Finds the event, asks policy.c, and
 * answers from the registry and the tree, or hands on to the event's life.
 */
#ifndef PP_BROKER_REQUEST_H
#define PP_BROKER_REQUEST_H

#include "daemon/broker/config.h"
#include "daemon/broker/lifecycle.h"
#include "daemon/broker/peer.h"

/* What requests are answered from. All borrowed but the scratch space. */
struct service {
	const struct config *config;
	const char *instance; /* "": the system's own */
	const char *registry; /* path */
	struct lifecycle *lifecycle;
	uint64_t started; /* CLOCK_REALTIME, ns */

	union pp_body reply;
};

/* As peers.request; userdata is the service. Replies now, or later. */
void request_handle(void *userdata, struct peer *peer, const struct pp_header *header,
		    const union pp_body *body);

#endif
