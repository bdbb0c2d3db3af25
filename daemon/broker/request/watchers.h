/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watchers: peers that are notified about events and CPUs, as far as they may read them. Watchers
 * never block the broker; dropped notices are counted and reported.
 */
#pragma once

#include "daemon/broker/edge/peer.h"
#include "daemon/broker/state/event.h"

#define WATCHERS_MAX 8 /* per connection */

struct watcher;

/* Empty: all zeroes. */
struct watchers {
	struct watcher *first;
	struct pp_msg_notice notice; /* the notice being sent */
};

/*
 * From now on notices answer the request; the first (STARTED) is sent at once. ns: watches this
 * namespace only; "": all. 0; -EDQUOT (WATCHERS_MAX); -ENOMEM.
 */
int watchers_add(struct watchers *w, struct peer *peer, const struct pp_header *request,
		 const char *ns);

void watchers_tell_event(struct watchers *w, enum pp_notice_kind kind, const struct event *e);
void watchers_tell_cpu(struct watchers *w, enum pp_notice_kind kind, unsigned cpu);

/* As peers.drained: there is room again. */
void watchers_drained(const struct peer *peer);
