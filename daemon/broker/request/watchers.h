/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watchers: peers that are told of events and CPUs that come, change and go, as far as they may
 * read. Nobody is waited for: what a peer has no room for is counted, and it is told how many
 * were lost.
 */
#pragma once

#include "daemon/broker/edge/peer.h"
#include "daemon/broker/state/event.h"

#define WATCHERS_MAX 8 /* of one connection */

struct watcher;

/* Empty: all zeroes. */
struct watchers {
	struct watcher *first;
	struct pp_msg_notice notice; /* what is being sent */
};

/*
 * From now on the request is answered with notices, the first of which (STARTED) is sent at
 * once. ns: of this namespace only; "": of all. 0; -EDQUOT (WATCHERS_MAX); -ENOMEM.
 */
int watchers_add(struct watchers *w, struct peer *peer, const struct pp_header *request,
		 const char *ns);

void watchers_tell_event(struct watchers *w, enum pp_notice_kind kind, const struct event *e);
void watchers_tell_cpu(struct watchers *w, enum pp_notice_kind kind, unsigned cpu);

/* As peers.drained: there is room again. */
void watchers_drained(const struct peer *peer);
