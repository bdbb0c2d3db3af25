// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connections: their lives, their epoll events and incoming requests. Must not know what requests
 * mean, nor how packets are sent: peer-send.c.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "daemon/broker/edge/peer-internal.h"
#include "daemon/dispose.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/packet.h"

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

/* The request goes on without the peer, and stays charged. */
static void detach_claim(struct peer_claim *claim)
{
	*claim->link = claim->next;
	if (claim->next)
		claim->next->link = claim->link;
	claim->peer->n_claims--;
	claim->peer = NULL;
}

static void dismiss_guests(struct peer *p)
{
	while (p->guests) {
		struct peer_guest *guest = p->guests;
		uint64_t began = peer_clock(p);

		peer_detach(guest);
		guest->gone(guest);
		peer_owe(p, began);
	}
}

/* On a slow machine a packet of the largest size takes a tenth of this. */
#define COSTLY_NSEC (1000 * 1000ULL)

#define TELL_EVERY 60 /* seconds: a user who begins debts must not fill the log as well */

uint64_t peer_clock(const struct peer *peer)
{
	return peer->peers->clock();
}

static void tell_debt(struct peer *p, const char *what, uint64_t cost)
{
	if (log_is_due(&p->peers->told, TELL_EVERY))
		log_warning("User %u is served less often: %s of its process %d took %u us of the "
			    "daemon's time.",
			    p->credentials.uid, what, (int)p->credentials.pid,
			    (unsigned)(cost / 1000));
}

void peer_owe(struct peer *p, uint64_t since)
{
	uint64_t cost = peer_clock(p) - since;

	if (cost < COSTLY_NSEC)
		return;
	p->peers->costly++;
	if (fair_queue_owe(p->peers->queue, &p->turn, cost))
		tell_debt(p, "a system call on the connection (in many epoll sets?)", cost);
}

void peer_spend(struct peer *peer, uint64_t since)
{
	uint64_t cost = peer_clock(peer) - since;

	if (fair_queue_spend(peer->peers->queue, &peer->turn, cost))
		tell_debt(peer, "the last of many notices and wakeups", cost);
}

static void ask(struct peer *p, uint64_t since)
{
	uint64_t cost = peer_clock(p) - since;

	if (fair_queue_ask(p->peers->queue, &p->turn, cost))
		tell_debt(p, "the last of costly requests", cost);
}

bool peer_is_silenced(const struct peer *peer)
{
	return fair_queue_is_silenced(&peer->turn);
}

void peers_close(const struct peers *peers, int fd)
{
	if (peers->files_come)
		dispose_fd(fd);
	else
		close_fd(fd);
}

static void peer_free(struct peer *p)
{
	struct packet *packet;
	uint64_t began;

	dismiss_guests(p);
	while (p->claims)
		detach_claim(p->claims);
	sd_event_source_disable_unref(p->io);
	began = peer_clock(p);
	if (p->credentials.uid == 0)
		close_fd(p->fd);
	else
		peers_close(p->peers, p->fd);
	peer_owe(p, began);
	fair_queue_leave(p->peers->queue, &p->turn);
	while ((packet = p->first)) {
		p->first = packet->next;
		free(packet);
	}
	free(p->deferred);
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	quota_release(p->peers->quota, QUOTA_CONNECTIONS, p->credentials.uid, NULL, 1);
	credentials_done(&p->credentials);
	free(p);
}

void peer_kill(struct peer *p)
{
	uint64_t began = peer_clock(p);

	p->dead = true;
	shutdown(p->fd, SHUT_RDWR);
	peer_owe(p, began);
}

/* Sets the epoll events. A hang-up is always reported. */
void peer_update_interest(struct peer *p)
{
	uint32_t events = 0;

	if (p->first && !p->dead)
		events = peer_is_silenced(p) ? 0 : EPOLLOUT; /* see on_relieved */
	else if (p->deferred || p->dead)
		/* The socket may be writable with too much in flight: edge-triggered, each packet
		 * that the peer reads wakes us. */
		events = EPOLLOUT | EPOLLET;
	else if (p->n_claims < p->peers->max_requests && !p->turn.waiting)
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

uint64_t peer_number(const struct peer *peer)
{
	return peer->number;
}

/* ── receiving ──────────────────────────────────────────────────────────────────────────── */

/* Handles the request in peers->body. It is charged until it is answered. */
static void handle_request(struct peer *p, const struct pp_header *header)
{
	struct peers *peers = p->peers;
	uint64_t began = peer_clock(p);
	char sentence[256];
	int r = quota_charge(peers->quota, QUOTA_REQUESTS, p->credentials.uid, NULL, 1);

	if (r == -EDQUOT) {
		quota_sentence(peers->quota, sentence, sizeof(sentence));
		peer_fail(p, header, EDQUOT, "%s", sentence);
		return;
	}
	if (r < 0) {
		peer_fail(p, header, -r, "The daemon has no memory for the request; try again.");
		return;
	}
	peers->claimed = false;
	peers->request(peers->userdata, p, header, &peers->body);
	/* A claim takes over the charge: see peer_claim_end. */
	if (!peers->claimed)
		quota_release(peers->quota, QUOTA_REQUESTS, p->credentials.uid, NULL, 1);
	ask(p, began);
}

/* Handles the packet in peers->in. */
static void handle_packet(struct peer *p, size_t size)
{
	struct peers *peers = p->peers;
	struct pp_header header = { 0 };
	int r;

	peers->in_size = size;
	r = pp_decode(peers->in, size, 0, false, &header, &peers->body);
	if (r == -EOPNOTSUPP) {
		peer_fail(p, &header, EOPNOTSUPP,
			  "This daemon (" PP_VERSION ") knows no request number %u; use a client "
			  "of its version.",
			  header.opcode);
	} else if (r == -EPROTONOSUPPORT) {
		header = (struct pp_header){ 0 };
		peer_fail(p, &header, EPROTONOSUPPORT,
			  "This daemon (" PP_VERSION ") speaks version %d of the protocol; use a "
			  "client that does.",
			  PP_PROTOCOL_VERSION);
		peer_kill(p);
	} else if (r < 0) {
		log_debug("Process %d (uid %u) sent a malformed request; disconnected.",
			  (int)p->credentials.pid, p->credentials.uid);
		peer_kill(p);
	} else {
		handle_request(p, &header);
	}
}

/* Also -EBADMSG if descriptors come along; the packet then stays in the socket. */
static ssize_t take_packet(struct peers *peers, int fd)
{
	if (peers->files_come && pp_packet_brings_fds(fd))
		return -EBADMSG;
	return pp_packet_receive(fd, peers->in, sizeof(peers->in), 0, NULL, MSG_DONTWAIT);
}

static void receive(struct peer *p)
{
	uint64_t began = peer_clock(p);
	ssize_t n = take_packet(p->peers, p->fd);

	peer_owe(p, began);
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
	peer->deferred = peer_packet_new(peer->peers->in, peer->peers->in_size);
	if (!peer->deferred)
		peer_kill(peer);
}

/* Handles one request: a deferred one first. */
static void on_turn(struct fair_queue_member *turn)
{
	struct peer *p = (struct peer *)((char *)turn - offsetof(struct peer, turn));

	if (!p->dead && !p->first && p->deferred) {
		_cleanup_free_ struct packet *again = TAKE_PTR(p->deferred);

		memcpy(p->peers->in, again->bytes, again->size);
		handle_packet(p, again->size);
	} else if (!p->dead && !p->first && p->n_claims < p->peers->max_requests) {
		receive(p);
	}
	peer_update_interest(p);
}

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;

	if (!p->dead && revents & EPOLLOUT)
		peer_flush(p);
	if (revents & (EPOLLHUP | EPOLLERR))
		p->dead = true;
	if (!p->dead && !p->first && (revents & EPOLLIN || p->deferred))
		fair_queue_ready(p->peers->queue, &p->turn);
	if (p->dead)
		dismiss_guests(p);
	/* After a hang-up the socket may still be open elsewhere; its content stays in flight. */
	if (p->dead && !peer_in_flight(p))
		peer_free(p);
	else
		peer_update_interest(p);
	return 0;
}

/* ── claims ─────────────────────────────────────────────────────────────────────────────── */

void peer_claim_begin(struct peer *peer, struct peer_claim *claim)
{
	assert(!peer->peers->claimed);
	peer->peers->claimed = true;
	claim->peer = peer;
	claim->peers = peer->peers;
	claim->uid = peer->credentials.uid;
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

	quota_release(claim->peers->quota, QUOTA_REQUESTS, claim->uid, NULL, 1);
	if (!p)
		return;
	detach_claim(claim);
	peer_update_interest(p);
}

#define WAITED_MAX 100000000ULL /* ns */

/* Waiting for a disk takes wall-clock time and no CPU time. */
void peer_claim_owe(struct peer_claim *claim, uint64_t nsec)
{
	struct fair_queue *queue =
		claim->peers->queue; /* NULL: all peers are gone, because the daemon ends */
	struct fair_queue_member turn;

	if (!queue || fair_queue_join(queue, &turn, claim->uid) < 0)
		return;
	fair_queue_delay(queue, &turn, MIN(nsec, WAITED_MAX));
	fair_queue_leave(queue, &turn);
}

/* ── guests ─────────────────────────────────────────────────────────────────────────────── */

void peer_attach(struct peer *peer, struct peer_guest *guest)
{
	guest->peer = peer;
	guest->next = peer->guests;
	guest->link = &peer->guests;
	if (guest->next)
		guest->next->link = &guest->next;
	peer->guests = guest;
}

void peer_detach(struct peer_guest *guest)
{
	if (!guest->peer)
		return;
	*guest->link = guest->next;
	if (guest->next)
		guest->next->link = guest->link;
	guest->peer = NULL;
}

const struct peer_guest *peer_guests(const struct peer *peer)
{
	return peer->guests;
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

/*
 * Tells a client that there are too many connections, then closes. Requests that have arrived are
 * read and dropped: closing a socket with unread data makes the client see ECONNRESET instead of
 * our error message.
 */
static void tell_away(struct peers *peers, int fd)
{
	struct pp_header header = { .opcode = PP_OP_ERROR };
	struct pp_msg_error body = { .error = EDQUOT };
	ssize_t size;

	quota_sentence(peers->quota, body.message, sizeof(body.message));
	size = pp_encode(&header, &body, peers->out, sizeof(peers->out));
	assert(size > 0);
	pp_packet_send(fd, peers->out, size, NULL, 0);
	shutdown(fd, SHUT_RD);
	while (take_packet(peers, fd) > 0)
		;
}

/* Turning a client away is charged like any reply. A user who is silenced gets no message. */
static void turn_away(struct peers *peers, int fd, const struct credentials *c)
{
	struct peer p = { .peers = peers, .credentials = *c };
	uint64_t began = peer_clock(&p);

	if (fair_queue_join(peers->queue, &p.turn, c->uid) < 0)
		return;
	if (!peer_is_silenced(&p)) {
		tell_away(peers, fd);
		peer_owe(&p, began);
	}
	fair_queue_leave(peers->queue, &p.turn);
}

int peer_new(struct peers *peers, int fd)
{
	_cleanup_free_ struct peer *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = credentials_read(fd, &p->credentials);
	if (r < 0)
		return r;
	r = quota_charge(peers->quota, QUOTA_CONNECTIONS, p->credentials.uid, NULL, 1);
	if (r == -EDQUOT)
		turn_away(peers, fd, &p->credentials);
	if (r < 0)
		goto fail;
	r = fair_queue_join(peers->queue, &p->turn, p->credentials.uid);
	if (r < 0)
		goto release;
	r = sd_event_add_io(peers->loop, &p->io, fd, EPOLLIN, on_io, p);
	if (r >= 0)
		r = sd_event_source_set_priority(p->io, FAIR_QUEUE_PRIORITY);
	if (r < 0)
		goto leave;
	p->peers = peers;
	p->number = ++peers->numbers;
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
leave:
	sd_event_source_disable_unref(p->io);
	fair_queue_leave(peers->queue, &p->turn);
release:
	quota_release(peers->quota, QUOTA_CONNECTIONS, p->credentials.uid, NULL, 1);
fail:
	credentials_done(&p->credentials);
	return r;
}

/* Sends the packets that were held back. */
static void on_relieved(void *userdata)
{
	struct peers *peers = userdata;

	for (struct peer *p = peers->first; p; p = p->next) {
		peer_update_interest(p);
		if (p->dropped && !peer_is_silenced(p))
			peer_speak_again(p);
	}
	if (peers->relieved)
		peers->relieved(peers->userdata);
}

static uint64_t cpu_time(void)
{
	return pp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int peers_init(struct peers *peers)
{
	const struct fair_queue_hooks hooks = {
		.take = on_turn,
		.relieved = on_relieved,
		.userdata = peers,
	};

	if (!peers->clock)
		peers->clock = cpu_time;
	return fair_queue_new(peers->loop, &hooks, &peers->queue);
}

void peers_done(struct peers *peers)
{
	while (peers->first)
		peer_free(peers->first);
	fair_queue_free(peers->queue);
	peers->queue = NULL;
}
