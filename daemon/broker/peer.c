// SPDX-License-Identifier: LGPL-2.1-or-later
/* One connection and its packets. Must not know what requests mean. */
#include "daemon/broker/peer.h"

#include <assert.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/packet.h"

/* Of the charge that the kernel keeps for a packet in a socket; any packet costs more. */
#define CHARGE_MIN 256

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
	struct peer_claim *claims;
	size_t n_claims;
};

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

static void peer_free(struct peer *p)
{
	struct packet *packet;

	while (p->claims)
		peer_claim_end(p->claims);
	while ((packet = p->first)) {
		p->first = packet->next;
		free(packet);
	}
	free(p->deferred);
	sd_event_source_disable_unref(p->io);
	close_fd(p->fd);
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	quota_release(p->peers->quota, p->credentials.uid);
	credentials_done(&p->credentials);
	free(p);
}

/*
 * Disconnects a peer from wherever we are: the hang-up that shutdown(2) makes wakes its own
 * handler, where it is freed while nobody holds it, and charged until nothing of ours is in its
 * socket any more.
 */
static void peer_kill(struct peer *p)
{
	p->dead = true;
	shutdown(p->fd, SHUT_RDWR);
}

/* What to wait for now. A hang-up is told in any case. */
static void update_interest(struct peer *p)
{
	uint32_t events = 0;

	if (p->first && !p->dead)
		events = EPOLLOUT;
	else if (p->deferred || p->dead)
		/* There may be room, and yet too much in flight: each packet that is read tells. */
		events = EPOLLOUT | EPOLLET;
	else if (p->n_claims < p->peers->max_requests)
		events = EPOLLIN;
	if (!p->io || events == p->interest)
		return;
	p->interest = events;
	sd_event_source_set_io_events(p->io, events);
}

const struct credentials *peer_credentials(const struct peer *peer)
{
	return &peer->credentials;
}

/* ── sending ────────────────────────────────────────────────────────────────────────────── */

static struct packet *packet_new(const void *bytes, size_t size)
{
	struct packet *packet = malloc(sizeof(*packet) + size);

	if (!packet)
		return NULL;
	packet->next = NULL;
	packet->size = size;
	memcpy(packet->bytes, bytes, size);
	return packet;
}

static void enqueue(struct peer *p, const void *bytes, size_t size)
{
	struct packet *packet;

	/* One for each claim, and the one that made us stop reading: more is our own bug. */
	assert(p->n_waiting <= p->peers->max_requests);
	packet = packet_new(bytes, size);
	if (!packet) {
		peer_kill(p);
		return;
	}
	*p->last = packet;
	p->last = &packet->next;
	p->n_waiting++;
	update_interest(p);
}

/* Descriptors in its socket that it has not read, at most. */
static size_t in_flight(struct peer *p)
{
	int charge;

	/* The kernel says that there is room while it still holds the last byte of the charge. */
	if (p->passed && ioctl(p->fd, SIOCOUTQ, &charge) == 0 && charge < CHARGE_MIN)
		p->passed = 0;
	return p->passed;
}

/*
 * The kernel lets our user have so many descriptors in flight and refuses more to everyone, so
 * nobody may fill that up by not reading. 0; -EAGAIN: the peer has to read first;
 * -ETOOMANYREFS: its user has to, on other connections, or several users.
 */
static int may_pass(struct peer *p, size_t n_fds)
{
	size_t limit = p->peers->max_in_flight, user = n_fds, all = n_fds;

	if (in_flight(p) && p->passed + n_fds > PP_FDS_MAX)
		return -EAGAIN;
	if (p->credentials.uid == 0)
		return 0;
	for (struct peer *q = p->peers->first; q; q = q->next) {
		size_t n = q->credentials.uid == 0 ? 0 : in_flight(q);

		all += n;
		user += q->credentials.uid == p->credentials.uid ? n : 0;
	}
	/* The first of a user, and the first of all, may be as large as they are. */
	if ((user > limit / 2 && user > n_fds) || (all > limit && all > n_fds))
		return -ETOOMANYREFS;
	return 0;
}

static int send_with_fds(struct peer *p, const void *bytes, size_t size, const int *fds,
			 size_t n_fds)
{
	int err = may_pass(p, n_fds);

	if (err >= 0)
		err = pp_packet_send(p->fd, bytes, size, fds, n_fds);
	if (err >= 0)
		p->passed += n_fds;
	return err;
}

static int send_packet(struct peer *p, size_t size, const int *fds, size_t n_fds)
{
	const void *bytes = p->peers->out;
	int err = -EAGAIN;

	if (p->dead)
		return 0;
	if (!p->first)
		err = n_fds ? send_with_fds(p, bytes, size, fds, n_fds)
			    : pp_packet_send(p->fd, bytes, size, NULL, 0);
	if (err == -EAGAIN && n_fds == 0) {
		enqueue(p, bytes, size);
		return 0;
	}
	/* A peer without descriptors in the way can only be gone, or the kernel out of memory. */
	if (err < 0 && (n_fds == 0 || err == -EPIPE || err == -ECONNRESET)) {
		peer_kill(p);
		return 0;
	}
	return err;
}

static int send_message(struct peer *p, uint16_t opcode, uint32_t serial, const void *body,
			const int *fds, size_t n_fds)
{
	struct pp_header header = { .opcode = opcode, .serial = serial, .fds = n_fds };
	ssize_t size = pp_encode(&header, body, p->peers->out, sizeof(p->peers->out));

	assert(size > 0);
	return send_packet(p, size, fds, n_fds);
}

int peer_reply(struct peer *peer, const struct pp_header *request, const void *body, const int *fds,
	       size_t n_fds)
{
	return send_message(peer, request->opcode | PP_OP_REPLY, request->serial, body, fds, n_fds);
}

/* Names in a sentence may be what a stranger sent: no control characters. */
static void make_printable(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

void peer_fail(struct peer *peer, const struct pp_header *request, int error, const char *fmt, ...)
{
	struct pp_msg_error body = { .error = error };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(body.message, sizeof(body.message), fmt, ap);
	va_end(ap);
	make_printable(body.message);
	send_message(peer, PP_OP_ERROR, request->serial, &body, NULL, 0);
}

/* ── receiving ──────────────────────────────────────────────────────────────────────────── */

/* Handles the packet that lies in peers->in. */
static void handle_packet(struct peer *p, size_t size)
{
	struct peers *peers = p->peers;
	struct pp_header header = { 0 };
	int err;

	peers->in_size = size;
	err = pp_decode(peers->in, size, 0, false, &header, &peers->body);
	if (err == -EOPNOTSUPP) {
		peer_fail(p, &header, EOPNOTSUPP,
			  "This daemon (" PP_VERSION ") knows no request number %u; use a client "
			  "of its version.",
			  header.opcode);
	} else if (err == -EPROTONOSUPPORT) {
		header = (struct pp_header){ 0 };
		peer_fail(p, &header, EPROTONOSUPPORT,
			  "This daemon (" PP_VERSION ") speaks version %d of the protocol; use a "
			  "client that does.",
			  PP_PROTOCOL_VERSION);
		peer_kill(p);
	} else if (err < 0) {
		log_debug("Process %d (uid %u) sent what is no request; disconnected.",
			  (int)p->credentials.pid, p->credentials.uid);
		peer_kill(p);
	} else {
		peers->request(peers->userdata, p, &header, &peers->body);
	}
}

static void receive(struct peer *p)
{
	ssize_t n =
		pp_packet_receive(p->fd, p->peers->in, sizeof(p->peers->in), 0, NULL, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		peer_kill(p);
		return;
	}
	handle_packet(p, n);
}

void peer_defer(struct peer *peer)
{
	assert(!peer->deferred);
	peer->deferred = packet_new(peer->peers->in, peer->peers->in_size);
	if (!peer->deferred)
		peer_kill(peer);
}

static void flush(struct peer *p)
{
	while (p->first && !p->dead) {
		struct packet *packet = p->first;
		int err = pp_packet_send(p->fd, packet->bytes, packet->size, NULL, 0);

		if (err == -EAGAIN)
			return;
		if (err < 0) {
			peer_kill(p);
			return;
		}
		p->first = packet->next;
		if (!p->first)
			p->last = &p->first;
		p->n_waiting--;
		free(packet);
	}
	if (p->deferred && !p->dead) {
		_cleanup_free_ struct packet *again = TAKE_PTR(p->deferred);

		memcpy(p->peers->in, again->bytes, again->size);
		handle_packet(p, again->size);
	}
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;

	if (!p->dead && revents & EPOLLOUT)
		flush(p);
	else if (!p->dead && revents & EPOLLIN)
		receive(p);
	if (revents & (EPOLLHUP | EPOLLERR))
		p->dead = true;
	/* Who hangs up need not have closed the socket, and what is in it stays in flight. */
	if (p->dead && !in_flight(p))
		peer_free(p);
	else
		update_interest(p);
	return 0;
}

/* ── claims ─────────────────────────────────────────────────────────────────────────────── */

void peer_claim_begin(struct peer *peer, struct peer_claim *claim)
{
	claim->peer = peer;
	claim->next = peer->claims;
	claim->link = &peer->claims;
	if (claim->next)
		claim->next->link = &claim->next;
	peer->claims = claim;
	peer->n_claims++;
}

void peer_claim_end(struct peer_claim *claim)
{
	struct peer *p = claim->peer;

	if (!p)
		return;
	*claim->link = claim->next;
	if (claim->next)
		claim->next->link = claim->link;
	p->n_claims--;
	claim->peer = NULL;
	update_interest(p);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

/*
 * Tells who is one too many, before the connection is closed. What it may have asked already is
 * taken and dropped: closing a socket with something unread would make the kernel say ECONNRESET
 * there in place of our sentence.
 */
static void turn_away(struct peers *peers, int fd)
{
	struct pp_header header = { .opcode = PP_OP_ERROR };
	struct pp_msg_error body = { .error = EDQUOT };
	ssize_t size;

	snprintf(body.message, sizeof(body.message),
		 "The daemon has as many connections as it may, of one user (%zu) or of all (%zu); "
		 "end some, or have MaxConnectionsPerUser= or MaxConnections= raised.",
		 peers->quota->max_per_user, peers->quota->max_connections);
	size = pp_encode(&header, &body, peers->out, sizeof(peers->out));
	assert(size > 0);
	pp_packet_send(fd, peers->out, size, NULL, 0);
	shutdown(fd, SHUT_RD);
	while (pp_packet_receive(fd, peers->in, sizeof(peers->in), 0, NULL, MSG_DONTWAIT) > 0)
		;
}

int peer_new(struct peers *peers, int fd)
{
	_cleanup_free_ struct peer *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = credentials_read(fd, &p->credentials);
	if (err < 0)
		return err;
	err = quota_charge(peers->quota, p->credentials.uid);
	if (err == -EDQUOT)
		turn_away(peers, fd);
	if (err < 0)
		goto fail;
	err = sd_event_add_io(peers->loop, &p->io, fd, EPOLLIN, on_io, p);
	if (err < 0) {
		quota_release(peers->quota, p->credentials.uid);
		goto fail;
	}
	p->peers = peers;
	p->fd = fd;
	p->interest = EPOLLIN;
	p->last = &p->first;
	p->next = peers->first;
	p->link = &peers->first;
	if (p->next)
		p->next->link = &p->next;
	peers->first = p;
	TAKE_PTR(p);
	return 0;
fail:
	credentials_done(&p->credentials);
	return err;
}

void peers_done(struct peers *peers)
{
	while (peers->first)
		peer_free(peers->first);
}
