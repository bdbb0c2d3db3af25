/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wakeups: from a record of an event that wakes readers, by way of the ring buffer that its
 * program writes to, to the eventfds of those who wait for it. While nobody waits nothing is
 * read, and the daemon sleeps.
 *
 * An event is meant by the id that its programs send: pp_event.origin.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/edge/peer.h"

#define WAKEUPS_MAX 64 /* of one connection */

struct wakeups;

/*
 * registry: its path. max: eventfds that there may be, root's aside; half of them of one user.
 * 0; -errno.
 */
int wakeups_new(sd_event *loop, const char *registry, size_t max, struct wakeups **ret);

/* All peers are gone. NULL is fine. */
void wakeups_free(struct wakeups *w);

/*
 * A new eventfd for the records of this event, for as long as the connection lives. *ret stays
 * ours, and *ret_guest (of the peer) takes it back if it cannot be passed: wakeups_take_back.
 * 0; -EDQUOT (WAKEUPS_MAX, or max); -ENOENT (there is no ring buffer); -EOPNOTSUPP (see
 * signaller.h); another -errno.
 */
int wakeups_add(struct wakeups *w, struct peer *peer, uint64_t event_id, int *ret,
		struct peer_guest **ret_guest);
void wakeups_take_back(struct peer_guest *guest);

/* Users that were in debt are not any more: wakes whoever was not woken meanwhile. As peers.relieved.
 */
void wakeups_relieved(struct wakeups *w);

/* As if a program had sent it. */
void wakeups_wake(struct wakeups *w, uint64_t event_id);
