/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests: the operations of the protocol. Finds the event, asks policy.c, and answers from the
 * registry and the tree, or passes the request to the lifecycle.
 */
#pragma once

#include "daemon/broker/auxtrace/auxtrace.h"
#include "daemon/broker/config/config.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/handout/copies.h"
#include "daemon/broker/handout/wakeups.h"
#include "daemon/broker/hotplug/hotplug.h"
#include "daemon/broker/lifecycle/lifecycle.h"
#include "daemon/broker/request/watchers.h"
#include "daemon/broker/sideband/sideband.h"
#include "daemon/broker/triggers/fire-limit.h"

/* The service that answers requests. Everything but the scratch space is borrowed. */
struct service {
	const struct config *config;
	const char *instance; /* "": the default instance */
	const char *registry; /* path */
	int totals;	      /* see event_count() */
	struct lifecycle *lifecycle;
	uint64_t started; /* CLOCK_REALTIME, ns */

	/* Writes a new event to a file that recreates it at the next boot. 0; a negative errno
	 * value with an error message. NULL: not supported. */
	int (*boot)(void *userdata, const struct event *e,
		    const struct pp_msg_create_request *request, char *sentence, size_t size);
	/* An event was deleted: removes its file, so that a reboot does not bring it back. NULL:
	 * likewise. */
	int (*forget)(void *userdata, const struct event *e, char *sentence, size_t size);
	/* Reads the configuration again and answers, at once or by a claim. NULL: likewise. */
	void (*reload)(void *userdata, struct peer *peer, const struct pp_header *header);
	void *userdata; /* for these three */

	const struct hotplug *hotplug;
	struct copies *copies;
	struct watchers *watchers;
	struct wakeups *wakeups;
	struct opening *openings; /* requests that wait for copies */
	struct sideband *sideband;
	struct auxtrace *auxtrace;
	struct asking *askings; /* requests that wait for one of these two */

	struct adoption *adoptions; /* that are under way */

	struct fire_limit fires;

	union pp_body reply;
	struct pp_parsed parsed;
};

/* As peers.request; userdata is the service. Replies now or later. */
void request_handle(void *userdata, struct peer *peer, const struct pp_header *header,
		    const union pp_body *body);
