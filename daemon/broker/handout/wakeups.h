/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wakeups: the program of an event that wakes readers writes to the ring buffer; the broker then
 * signals the eventfds of the event's readers. While nobody waits, nothing is read and the daemon
 * sleeps.
 *
 * The id that the programs send identifies the event: pp_event.origin.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/edge/peer.h"

#define WAKEUPS_MAX 64 /* per connection */

struct wakeups;

/*
 * registry: its path. max: the limit of eventfds, not counting root's; a user gets half. 0; -errno.
 */
int wakeups_new(sd_event *loop, const char *registry, size_t max, struct wakeups **ret);

/* All peers must be gone. NULL is accepted. */
void wakeups_free(struct wakeups *w);

/*
 * A new eventfd for the records of this event, for as long as the connection lives. *ret stays
 * ours. If it cannot be passed, wakeups_take_back on *ret_guest (of the peer) removes it. 0;
 * -EDQUOT (WAKEUPS_MAX, or max); -ENOENT (there is no ring buffer); -EOPNOTSUPP (see signaller.h);
 * another -errno.
 */
int wakeups_add(struct wakeups *w, struct peer *peer, uint64_t event_id, int *ret,
		struct peer_guest **ret_guest);
void wakeups_take_back(struct peer_guest *guest);

/* Users are no longer silenced: wakes the readers that were skipped meanwhile. As peers.relieved. */
void wakeups_relieved(struct wakeups *w);

/* As if a program had sent the id. */
void wakeups_wake(struct wakeups *w, uint64_t event_id);
