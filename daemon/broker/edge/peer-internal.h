/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What peer.c and peer-send.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/edge/peer.h"

/* A packet kept for later: a reply without room, or a request to be handled again. */
struct packet {
	struct packet *next;
	size_t size;
	uint8_t bytes[];
};

struct peer {
	struct peers *peers;
	struct peer *next, **link;
	struct credentials credentials;
	int fd;
	sd_event_source *io;
	uint32_t interest; /* what io waits for */
	bool dead;	   /* shut down; freed by its next event */

	struct packet *first, **last; /* replies that wait for room */
	size_t n_waiting;
	struct packet *deferred; /* a request that waits for room for its descriptors */
	size_t passed;		 /* descriptors sent since its socket was last seen empty */
	bool unasked;		 /* what is being sent answers no request of this moment */
	bool silenced;		 /* something was not sent because its user is in debt */
	struct fair_queue_member
		turn; /* waits while there is something to receive or to do again */
	struct peer_claim *claims;
	size_t n_claims;
	struct peer_guest *guests;
};

/*
 * Disconnects a peer from wherever we are: the hang-up that shutdown(2) makes wakes its own
 * handler, where it is freed while nobody holds it, and charged until nothing of ours is in its
 * socket any more.
 */
void peer_kill(struct peer *p);

/* Around each system call on its socket: what it cost is charged to the user's turns. */
void peer_owe(struct peer *p, uint64_t since);

/* To be called when what its events depend on has changed. */
void peer_update_interest(struct peer *p);

/* A copy of the packet, the caller's; or NULL. */
struct packet *peer_packet_new(const void *bytes, size_t size);

/* Descriptors in its socket that it has not read, at most. */
size_t peer_in_flight(struct peer *p);

/* Nothing keeps it from being notified: tells peers.drained. */
void peer_speak_again(struct peer *p);

/* Sends of what waits for room as much as there is room for. */
void peer_flush(struct peer *p);
