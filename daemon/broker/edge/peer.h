/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A peer: one client's connection. Reads packets one at a time, passes well-formed requests on, and
 * sends replies without ever blocking. A peer's fault costs that peer only.
 *
 * The memory that a peer can make us hold is bounded. It is not read while a reply waits for room
 * in its socket, nor while max_requests of its requests are unanswered. It gets no further
 * descriptors before it has read the last ones.
 *
 * The peer decides how long a system call on its socket takes: if the socket is in a million epoll
 * sets, our call wakes them all. The broker measures that time, and the user waits for its next
 * turn, and for what we send it. After requests that took much of the broker's time it waits for its
 * next turn only: what was begun for it is answered, and its watchers are told.
 *
 * The peer does not decide how long a close takes us: files that it sends are not let in, or a
 * short-lived thread closes them (daemon/dispose.h).
 *
 * Users take turns: the broker handles one request of one user, then one of the next, however many
 * connections each has.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/edge/policy.h"
#include "daemon/broker/edge/fair-queue.h"
#include "daemon/broker/state/quota.h"
#include "proto/macro.h"
#include "proto/protocol.h"

#define PEER_REQUESTS_MAX 1024 /* unanswered requests per peer; the configuration may allow fewer */

struct peer;

struct peers {
	sd_event *loop;
	struct quota *quota;
	size_t max_requests;  /* per peer */
	bool files_come;      /* descriptors may come with packets: this kernel cannot block them */
	size_t max_in_flight; /* descriptors in flight, except root's; a user has half */
	void (*request)(void *userdata, struct peer *peer, const struct pp_header *header,
			const union pp_body *body);
	/* This peer may be notified again: peer_is_backlogged() was true and no longer is. May be
	 * NULL. */
	void (*drained)(void *userdata, struct peer *peer);
	/* A user is no longer silenced. May be NULL. */
	void (*relieved)(void *userdata);
	void *userdata;
	/* The time in ns by which a peer's calls are charged. NULL: the CPU time of this thread. */
	uint64_t (*clock)(void);

	struct peer *first;
	struct fair_queue *queue;
	uint64_t numbers; /* that connections have */
	uint64_t costly;  /* system calls so costly that they began a debt */
	uint64_t told;	  /* when a debt was last logged: log_is_due() */
	uint8_t in[PP_PACKET_MAX], out[PP_PACKET_MAX];
	size_t in_size; /* of the current packet */
	bool claimed;	/* its answer comes later */
	union pp_body body;
};

/*
 * A request that is answered later. It is charged to its user until peer_claim_end, which must
 * always be called, even when the peer is gone: the work for it still exists.
 */
struct peer_claim {
	struct peer *peer; /* NULL: the peer is gone */
	struct peer_claim *next, **link;
	struct peers *peers;
	uint32_t uid;
};

/* An object that lives as long as a peer: a watcher, an eventfd to signal. */
struct peer_guest {
	/* The peer is going. The guest is detached already, and may be freed. */
	void (*gone)(struct peer_guest *guest);
	struct peer *peer; /* NULL: not attached */
	struct peer_guest *next, **link;
};

/* Initialises the shared state, after the fields up to clock are set. 0; -errno. */
int peers_init(struct peers *peers);

/*
 * Takes over the connection and charges its user. 0; -EDQUOT; another -errno; on failure fd stays
 * the caller's.
 */
int peer_new(struct peers *peers, int fd);

/* Closes a connection that never became a peer; unread packets may hold anything. */
void peers_close(const struct peers *peers, int fd);

/* Disconnects and frees all peers. Accepts a half-made or empty struct. */
void peers_done(struct peers *peers);

const struct credentials *peer_credentials(const struct peer *peer);

/* A number that no other connection has had. */
uint64_t peer_number(const struct peer *peer);

/*
 * Sends the reply to `request`. The descriptors stay the caller's. 0; -EAGAIN (only with
 * descriptors: they cannot be queued; close them and peer_defer); -ETOOMANYREFS (only with
 * descriptors: too many are in flight); another -errno with descriptors that the kernel refused to
 * pass. Any other failure costs the peer, and the result is 0.
 */
int peer_reply(struct peer *peer, const struct pp_header *request, const void *body, const int *fds,
	       size_t n_fds);

/* Sends an error reply. error: positive errno value. */
void peer_fail(struct peer *peer, const struct pp_header *request, int error, const char *fmt, ...)
	_printf_(4, 5);

/* When there is room, handles the current request again from its packet. */
void peer_defer(struct peer *peer);

/*
 * A notification: an unsolicited reply to a request that is answered repeatedly. The costs add up
 * for its user, since many may cost little each.
 */
void peer_notify(struct peer *peer, const struct pp_header *request, const void *body);

/* Whether the peer must not be notified: a packet waits for room in its socket, its user is
 * silenced, or it is on its way out. peers.drained tells when that ends. */
bool peer_is_backlogged(struct peer *peer);

/*
 * For other unsolicited work: take the start with peer_clock(), and charge the time afterwards. No
 * work is done for a user who is silenced; peers.relieved tells when that ends.
 */
uint64_t peer_clock(const struct peer *peer);
void peer_spend(struct peer *peer, uint64_t since);
bool peer_is_silenced(const struct peer *peer);

/* The peer's first guest, which leads to the others. */
const struct peer_guest *peer_guests(const struct peer *peer);

/* Only within peers.request: the current request is answered later. */
void peer_claim_begin(struct peer *peer, struct peer_claim *claim);
void peer_claim_end(struct peer_claim *claim);
/* Charges the time of a request during which nobody else was served, also if the peer is gone. The
 * charge is a tenth of a second at most, since others can slow down a disk. */
void peer_claim_owe(struct peer_claim *claim, uint64_t nsec);

void peer_attach(struct peer *peer, struct peer_guest *guest);
/* No effect on a guest that is not attached. */
void peer_detach(struct peer_guest *guest);
