// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packets on their way to a peer, and their descriptors: how many there are, and which packets wait
 * for room. Must not know how packets are received, nor when a connection ends.
 */
#include <assert.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/broker/edge/peer-internal.h"
#include "proto/macro.h"
#include "proto/packet.h"
#include "proto/printable.h"

/* Lower bound of what the kernel charges for a packet in a socket. */
#define CHARGE_MIN 256

/* pp_packet_send with its time charged. */
static int send_now(struct peer *p, const void *bytes, size_t size, const int *fds, size_t n_fds)
{
	uint64_t began = peer_clock(p);
	int r = pp_packet_send(p->fd, bytes, size, fds, n_fds);

	if (p->unasked)
		peer_spend(p, began);
	else
		peer_owe(p, began);
	return r;
}

/* ── what waits for room ────────────────────────────────────────────────────────────────── */

struct packet *peer_packet_new(const void *bytes, size_t size)
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

	/* One for each claim, one for the request that stopped our reading, and one for watchers
	 * (see peer_is_backlogged); more is our own bug. Claims may date from a time with a higher
	 * limit. */
	assert(p->n_waiting <= PEER_REQUESTS_MAX + 1);
	packet = peer_packet_new(bytes, size);
	if (!packet) {
		peer_kill(p);
		return;
	}
	*p->last = packet;
	p->last = &packet->next;
	p->n_waiting++;
	peer_update_interest(p);
}

void peer_speak_again(struct peer *p)
{
	p->dropped = false;
	if (p->peers->drained)
		p->peers->drained(p->peers->userdata, p);
}

void peer_flush(struct peer *p)
{
	while (p->first && !p->dead && !peer_is_silenced(p)) {
		struct packet *packet = p->first;
		int r;

		p->unasked = true;
		r = send_now(p, packet->bytes, packet->size, NULL, 0);
		p->unasked = false;
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			peer_kill(p);
			return;
		}
		p->first = packet->next;
		if (!p->first)
			p->last = &p->first;
		p->n_waiting--;
		free(packet);
		if (!p->first)
			peer_speak_again(p);
	}
}

bool peer_is_backlogged(struct peer *peer)
{
	if (peer_is_silenced(peer))
		peer->dropped = true;
	return peer->first || peer->dead || peer->dropped;
}

/* ── descriptors ────────────────────────────────────────────────────────────────────────── */

size_t peer_in_flight(struct peer *p)
{
	int charge;

	/* The socket is writable while the kernel still holds the last byte of the charge. */
	if (p->passed && ioctl(p->fd, SIOCOUTQ, &charge) == 0 && charge < CHARGE_MIN)
		p->passed = 0;
	return p->passed;
}

/*
 * The kernel limits the descriptors that our user has in flight. At the limit it refuses
 * everyone's, so a peer that does not read must not fill it. 0; -EAGAIN: the peer has to read
 * first; -ETOOMANYREFS: its user has to read on other connections, or several users have to.
 */
static int may_pass(struct peer *p, size_t n_fds)
{
	size_t limit = p->peers->max_in_flight, user = n_fds, all = n_fds;

	if (peer_in_flight(p) && p->passed + n_fds > PP_FDS_MAX)
		return -EAGAIN;
	if (p->credentials.uid == 0)
		return 0;
	for (struct peer *q = p->peers->first; q; q = q->next) {
		size_t n = q->credentials.uid == 0 ? 0 : peer_in_flight(q);

		all += n;
		user += q->credentials.uid == p->credentials.uid ? n : 0;
	}
	/* A user's first packet, and the first of all, may have any size. */
	if ((user > limit / 2 && user > n_fds) || (all > limit && all > n_fds))
		return -ETOOMANYREFS;
	return 0;
}

static int send_with_fds(struct peer *p, const void *bytes, size_t size, const int *fds,
			 size_t n_fds)
{
	int r = may_pass(p, n_fds);

	if (r >= 0)
		r = send_now(p, bytes, size, fds, n_fds);
	if (r >= 0)
		p->passed += n_fds;
	return r;
}

/* ── packets ────────────────────────────────────────────────────────────────────────────── */

static int send_packet(struct peer *p, size_t size, const int *fds, size_t n_fds)
{
	const void *bytes = p->peers->out;
	int r = -EAGAIN;

	if (p->dead)
		return 0;
	if (!p->first && !peer_is_silenced(p))
		r = n_fds ? send_with_fds(p, bytes, size, fds, n_fds)
			  : send_now(p, bytes, size, NULL, 0);
	if (r == -EAGAIN && n_fds == 0) {
		enqueue(p, bytes, size);
		return 0;
	}
	/* A send without descriptors only fails when the peer is gone or the kernel has no
	 * memory. */
	if (r < 0 && (n_fds == 0 || r == -EPIPE || r == -ECONNRESET)) {
		peer_kill(p);
		return 0;
	}
	return r;
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

void peer_notify(struct peer *peer, const struct pp_header *request, const void *body)
{
	peer->unasked = true;
	peer_reply(peer, request, body, NULL, 0);
	peer->unasked = false;
}

void peer_fail(struct peer *peer, const struct pp_header *request, int error, const char *fmt, ...)
{
	struct pp_msg_error body = { .error = error };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(body.message, sizeof(body.message), fmt, ap);
	va_end(ap);
	/* Names in an error message may come from a client. */
	make_printable(body.message, '?');
	send_message(peer, PP_OP_ERROR, request->serial, &body, NULL, 0);
}
