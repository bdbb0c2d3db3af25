/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by peer.c and peer-send.c only. */
#pragma once

#include "daemon/broker/edge/peer.h"

/* A packet kept for later: a reply that waits for room, or a request to handle again. */
struct packet {
	struct packet *next;
	size_t size;
	uint8_t bytes[];
};

struct peer {
	struct peers *peers;
	struct peer *next, **link;
	struct credentials credentials;
	uint64_t number;
	int fd;
	sd_event_source *io;
	uint32_t interest; /* the events that io waits for */
	bool dead;	   /* shut down; its next event frees it */

	struct packet *first, **last; /* replies that wait for room */
	size_t n_waiting;
	struct packet *deferred;       /* a request that waits for room for its descriptors */
	size_t passed;		       /* descriptors sent since its socket was last seen empty */
	bool unasked;		       /* the packet being sent is a notification or was queued */
	bool dropped;		       /* a notification was, because its user is silenced */
	struct fair_queue_member turn; /* waits while there is a packet to receive or to retry */
	struct peer_claim *claims;
	size_t n_claims;
	struct peer_guest *guests;
};

/*
 * Disconnects a peer from any context. The hang-up that shutdown(2) causes wakes the peer's own
 * handler, which frees it while nobody uses it. The peer stays charged until none of our packets is
 * in its socket.
 */
void peer_kill(struct peer *p);

/* Called after each system call on its socket that began at `since`: charges the time to the user's
 * turns. */
void peer_owe(struct peer *p, uint64_t since);

/* Call this when the state behind its epoll events has changed. */
void peer_update_interest(struct peer *p);

/* A copy of the packet for the caller; or NULL. */
struct packet *peer_packet_new(const void *bytes, size_t size);

/* The most descriptors that its socket can hold unread. */
size_t peer_in_flight(struct peer *p);

/* If nothing blocks notifications, calls peers.drained. */
void peer_speak_again(struct peer *p);

/* Sends waiting packets while there is room. */
void peer_flush(struct peer *p);
