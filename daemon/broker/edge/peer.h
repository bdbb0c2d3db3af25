/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A peer: one client's connection. Reads its packets one at a time, hands well-formed
 * requests on, and sends replies without ever waiting. A fault of a peer costs that peer.
 *
 * What a peer can make us hold is bounded: it is not read while a reply waits for room in its
 * socket, nor while it has max_requests requests that are not yet answered; and it gets no more
 * descriptors before it has read those it was sent.
 *
 * What a system call on a peer's socket costs the peer decides: whoever has it in a million epoll
 * sets has them all woken in our time. That is measured, and the user waits for its next turn.
 *
 * Nor does it decide what a close costs us: files that it sent along are not let in, or closed in
 * the time of a thread that ends (daemon/dispose.h).
 *
 * Users take turns: of all that has arrived one request of one user is handled, then one of the
 * next, however many connections each has.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/edge/policy.h"
#include "daemon/broker/edge/fair-queue.h"
#include "daemon/broker/state/quota.h"
#include "proto/macro.h"
#include "proto/protocol.h"

#define PEER_REQUESTS_MAX 1024 /* under way of one; the configuration may allow fewer */

struct peer;

/* All peers, and what they share. */
struct peers {
	sd_event *loop;
	struct quota *quota;
	size_t max_requests; /* of one peer */
	bool files_come; /* descriptors may come with packets: this kernel cannot keep them out */
	size_t max_in_flight; /* descriptors sent and not read: of all but root; half: of a user */
	void (*request)(void *userdata, struct peer *peer, const struct pp_header *header,
			const union pp_body *body);
	/* This peer may be sent what it was not asked for again: peer_is_backlogged() was true, and
	 * is not any more. May be NULL. */
	void (*drained)(void *userdata, struct peer *peer);
	/* A user is not in debt any more. May be NULL. */
	void (*relieved)(void *userdata);
	void *userdata;

	struct peer *first;
	struct fair_queue *queue;
	uint64_t costly; /* system calls that cost so much that their user came into debt */
	uint64_t told;	 /* the log, of one: log_is_due() */
	uint8_t in[PP_PACKET_MAX], out[PP_PACKET_MAX];
	size_t in_size; /* of the packet that is being handled */
	bool claimed;	/* and it is answered later */
	union pp_body body;
};

/*
 * A request whose reply comes later. It is charged to its user until peer_claim_end, which must
 * come in any case, also when the peer is gone: what was begun for it is still there.
 */
struct peer_claim {
	struct peer *peer; /* NULL: it went away meanwhile */
	struct peer_claim *next, **link;
	struct peers *peers;
	uint32_t uid;
};

/* Something that lives with a peer and ends with it: a watcher, a descriptor to wake. */
struct peer_guest {
	/* The peer is going. The guest is not attached any more, and may be freed. */
	void (*gone)(struct peer_guest *guest);
	struct peer *peer; /* NULL: not attached */
	struct peer_guest *next, **link;
};

/* Sets up what peers share, when its fields up to userdata are filled in. 0; -errno. */
int peers_init(struct peers *peers);

/*
 * Takes over the connection, charged to its user. 0; -EDQUOT; another -errno; on failure fd
 * stays the caller's.
 */
int peer_new(struct peers *peers, int fd);

/* Closes a connection that is no peer's: what lies in it unread may be anything. */
void peers_close(const struct peers *peers, int fd);

/* Disconnects and frees all of them. Accepts a half-made or empty one. */
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

/*
 * A reply that nobody asked for just now, to a request that is answered again and again. What it
 * costs is added up for its user: many may cost little each.
 */
void peer_notify(struct peer *peer, const struct pp_header *request, const void *body);

/* Whether something it was sent waits for room in its socket, its user is in debt, or it is on its
 * way out: it is not to be notified then. peers.drained tells when that is over. */
bool peer_is_backlogged(struct peer *peer);

/*
 * What else is done for a peer without being asked: when it began, by peer_clock(), is told
 * afterwards. Nothing is to be done for who is in debt; peers.relieved tells when that is over.
 */
uint64_t peer_clock(void);
void peer_spend(struct peer *peer, uint64_t since);
bool peer_in_debt(const struct peer *peer);

/* What lives with it: the first, which leads to the others. */
const struct peer_guest *peer_guests(const struct peer *peer);

/* Within peers.request only: the request that is being handled is answered later. */
void peer_claim_begin(struct peer *peer, struct peer_claim *claim);
void peer_claim_end(struct peer_claim *claim);
/* For its request nobody was served for so long: its user owes that time, also if the peer is gone;
 * a tenth of a second at most, for a disk may be slow by what others do. After the reply: who is in
 * debt is sent nothing. */
void peer_claim_owe(struct peer_claim *claim, uint64_t nsec);

void peer_attach(struct peer *peer, struct peer_guest *guest);
/* Does nothing to one that is not attached. */
void peer_detach(struct peer_guest *guest);
