/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A peer: one client's connection. Reads its packets one at a time, hands well-formed
 * requests on, and sends replies without ever waiting. A fault of a peer costs that peer.
 *
 * What a peer can make us hold is bounded: it is not read while a reply waits for room in its
 * socket, nor while it has max_requests requests that are not yet answered; and it gets no more
 * descriptors before it has read those it was sent.
 */
#ifndef PP_BROKER_PEER_H
#define PP_BROKER_PEER_H

#include <systemd/sd-event.h>

#include "daemon/broker/policy.h"
#include "daemon/broker/quota.h"
#include "proto/macro.h"
#include "proto/protocol.h"

struct peer;

/* All peers, and what they share. */
struct peers {
	sd_event *loop;
	struct quota *quota;
	size_t max_requests;  /* of one peer */
	size_t max_in_flight; /* descriptors sent and not read: of all but root; half: of a user */
	void (*request)(void *userdata, struct peer *peer, const struct pp_header *header,
			const union pp_body *body);
	void *userdata;

	struct peer *first;
	uint8_t in[PP_PACKET_MAX], out[PP_PACKET_MAX];
	size_t in_size; /* of the packet that is being handled */
	union pp_body body;
};

/* A request whose reply comes later. Ends by peer_claim_end, also when the peer is gone. */
struct peer_claim {
	struct peer *peer; /* NULL: it went away meanwhile */
	struct peer_claim *next, **link;
};

/*
 * Takes over the connection, charged to its user. 0; -EDQUOT; another -errno; on failure fd
 * stays the caller's.
 */
int peer_new(struct peers *peers, int fd);

/* Disconnects and frees all of them. */
void peers_done(struct peers *peers);

const struct credentials *peer_credentials(const struct peer *peer);

/*
 * Sends the reply to `request`. The descriptors stay the caller's. 0; -EAGAIN (only with
 * descriptors: they cannot be queued; close them and peer_defer); -ETOOMANYREFS (only with
 * descriptors: too many are on their way); another -errno with descriptors that the kernel
 * refused to pass. Otherwise what goes wrong costs the peer, and
 * is 0.
 */
int peer_reply(struct peer *peer, const struct pp_header *request, const void *body, const int *fds,
	       size_t n_fds);

/* Sends an error instead. error: positive errno value. */
void peer_fail(struct peer *peer, const struct pp_header *request, int error, const char *fmt, ...)
	_printf_(4, 5);

/* Handles the request that is being handled again, from its packet, when there is room. */
void peer_defer(struct peer *peer);

void peer_claim_begin(struct peer *peer, struct peer_claim *claim);
void peer_claim_end(struct peer_claim *claim);

#endif
