// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The socket. Answers come in one way only: requests are queued and sent as far as the socket takes
 * them; dispatch reads packets and finishes requests. A blocking call does the same, with poll(2)
 * around it.
 */
#include "client/daemon/connection.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "client/local/direct.h"
#include "client/local/saved.h"
#include "proto/clock.h"
#include "proto/packet.h"
#include "proto/places.h"

/* Packets that one dispatch reads at most, so that the caller's loop gets its turn. */
#define PACKETS_PER_DISPATCH 64

/* How long to look for an answer before sleeping: an answer mostly takes less time than waking a
 * sleeper on an idle CPU. The loop yields, because the daemon may need this very CPU to answer. */
#define LOOK_NS 100000

int connection_fail(struct perfpersist *p, int error)
{
	snprintf(p->error, sizeof(p->error), "%s", client_sentence());
	return error;
}

_public_ const char *perfpersist_error(struct perfpersist *p)
{
	return p ? p->error : client_sentence();
}

/* ── Connecting ─────────────────────────────────────────────────────────────────────────── */

static int not_running(const struct perfpersist_options *opts, const char *path)
{
	if (opts->socket)
		return client_fail(
			-ECONNREFUSED,
			"cannot reach perfpersistd at %s: nobody listens there; start it "
			"or check the path",
			path);
	if (opts->instance && *opts->instance)
		return client_fail(-ECONNREFUSED,
				   "cannot reach perfpersistd at %s: it is not running; start it "
				   "with `perfpersistd --instance %s`",
				   path, opts->instance);
	return client_fail(-ECONNREFUSED,
			   "cannot reach perfpersistd at %s: it is not running; start it with "
			   "`systemctl start perfpersistd`",
			   path);
}

static int connect_socket(struct perfpersist *p, const struct perfpersist_options *opts)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t size = strlen(p->socket);

	if (size >= sizeof(address.sun_path))
		return client_fail(-EINVAL,
				   "cannot reach perfpersistd at %s: the path is longer "
				   "than %zu bytes",
				   p->socket, sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, p->socket, size);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return client_fail(-errno, "cannot make a socket to reach perfpersistd: %m");
	while (connect(p->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
			return not_running(opts, p->socket);
		return client_fail(-errno, "cannot reach perfpersistd at %s: %m", p->socket);
	}
	if (fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0)
		return client_fail(-errno, "cannot use the socket to perfpersistd: %m");
	return 0;
}

static int find_place(const char *given, const char *instance, const char *leaf, char **ret)
{
	char path[PATH_MAX];
	int r = 0;

	if (!given)
		r = pp_place(instance, leaf, path, sizeof(path));
	if (r < 0)
		return client_fail(r,
				   "\"%s\" cannot be the name of an instance: names are "
				   "[a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes",
				   instance);
	*ret = strdup(given ? given : path);
	return *ret ? 0 : client_fail(-ENOMEM, "cannot connect: out of memory");
}

static int connect_to(struct perfpersist *p, const struct perfpersist_options *opts)
{
	int r;

	if (opts->instance && *opts->instance && !(p->instance = strdup(opts->instance)))
		return client_fail(-ENOMEM, "cannot connect: out of memory");
	if (opts->direct && opts->saved)
		return client_fail(-EINVAL, "cannot read the registry (direct) and a save at "
					    "once: give one of them");
	if (opts->saved)
		return saved_open(opts->instance, opts->saved, &p->saved, &p->saved_fd);
	if (opts->direct) {
		r = find_place(opts->registry, opts->instance, "/registry", &p->registry);
		return r < 0 ? r : direct_check(p->registry);
	}
	r = find_place(opts->socket, opts->instance, "/control", &p->socket);
	if (r < 0)
		return r;
	p->packet = malloc(PP_PACKET_MAX);
	p->body = malloc(sizeof(*p->body));
	if (!p->packet || !p->body)
		return client_fail(-ENOMEM, "cannot connect: out of memory");
	return connect_socket(p, opts);
}

_public_ int perfpersist_connect(const struct perfpersist_options *opts, struct perfpersist **ret)
{
	static const struct perfpersist_options defaults = { .sz = sizeof(defaults) };
	struct perfpersist *p;
	int r;

	if (!opts)
		opts = &defaults;
	if (!SZ_IS_VALID(opts))
		return client_fail(-EINVAL,
				   "cannot connect with a struct perfpersist_options of "
				   "%zu bytes: set its sz to its size",
				   opts->sz);
	p = calloc(1, sizeof(*p));
	if (!p)
		return client_fail(-ENOMEM, "cannot connect: out of memory");
	p->fd = p->saved_fd = -EBADF;
	TAILQ_INIT(&p->requests);
	snprintf(p->error, sizeof(p->error), "nothing has failed");
	r = connect_to(p, opts);
	if (r < 0) {
		p->ended = r; /* keeps the error message */
		perfpersist_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

/* ── The end ────────────────────────────────────────────────────────────────────────────── */

static void finish(struct perfpersist *p, struct request *req, int error)
{
	TAILQ_REMOVE(&p->requests, req, entry);
	if (error < 0)
		connection_fail(p, error);
	req->done(req, error);
	request_free(req);
}

/* No requests are possible any more; the next dispatch tells all waiters. */
static void end(struct perfpersist *p, int error)
{
	if (p->ended)
		return;
	p->ended = connection_fail(p, error);
	shutdown(p->fd, SHUT_RDWR); /* wakes a caller's loop that polls the descriptor */
}

static int finish_all(struct perfpersist *p)
{
	char why[CLIENT_SENTENCE_SIZE];
	struct request *req;
	int ran = 0;

	memcpy(why, p->error, sizeof(why));
	while ((req = TAILQ_FIRST(&p->requests))) {
		client_fail(p->ended, "%s", why);
		finish(p, req, p->ended);
		ran++;
	}
	client_fail(p->ended, "%s", why);
	connection_fail(p, p->ended);
	return ran;
}

_public_ void perfpersist_free(struct perfpersist *p)
{
	if (!p)
		return;
	if (!p->ended)
		p->ended = connection_fail(
			p, client_fail(-ECANCELED, "the connection was closed by its owner"));
	if (!TAILQ_EMPTY(&p->requests))
		finish_all(p);
	close_fd(p->fd);
	free(p->socket);
	close_fd(p->saved_fd);
	free(p->registry);
	free(p->saved);
	free(p->instance);
	free(p->packet);
	free(p->body);
	free(p);
}

/* ── Sending ────────────────────────────────────────────────────────────────────────────── */

static uint32_t next_serial(struct perfpersist *p)
{
	if (++p->serial == 0) /* 0 is no request's: the daemon uses it for messages about the
			       * connection */
		p->serial = 1;
	return p->serial;
}

static int send_request(struct perfpersist *p, struct request *req)
{
	struct pp_header h = { .version = PP_PROTOCOL_VERSION, .opcode = req->op };
	ssize_t size;
	int r;

	h.serial = req->serial ? req->serial : next_serial(p);
	req->serial = h.serial;
	size = pp_encode(&h, &req->body, p->packet, PP_PACKET_MAX);
	if (size < 0)
		return client_fail((int)size, "cannot put a request into a packet: %s",
				   strerror((int)-size));
	r = pp_packet_send(p->fd, p->packet, (size_t)size, NULL, 0);
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		return client_fail(-ECONNRESET,
				   "the connection to perfpersistd at %s has ended (%s): it was "
				   "stopped or restarted; connect anew",
				   p->socket, strerror(-r));
	req->sent = true;
	return 0;
}

/* Sends queued requests, in order, as far as the socket takes them. */
static int flush(struct perfpersist *p)
{
	struct request *req;

	TAILQ_FOREACH(req, &p->requests, entry)
	{
		int r = req->sent ? 0 : send_request(p, req);

		if (r < 0)
			return r == -EAGAIN ? 0 : r;
	}
	return 0;
}

int connection_submit(struct perfpersist *p, struct request *req)
{
	if (p->ended) {
		request_free(req);
		return connection_fail(p, client_fail(p->ended, "the connection to perfpersistd "
								"has ended; connect anew"));
	}
	TAILQ_INSERT_TAIL(&p->requests, req, entry);
	if (!p->socket)
		return 0;
	flush(p); /* on failure replies may still be readable: dispatch finds the end */
	return 0;
}

/* ── Receiving ──────────────────────────────────────────────────────────────────────────── */

static int malformed(const struct perfpersist *p, int error)
{
	if (error == -EPROTONOSUPPORT)
		return client_fail(error,
				   "perfpersistd at %s speaks another version of the "
				   "protocol: use a libperfpersist of the same release",
				   p->socket);
	return client_fail(-EBADMSG,
			   "what arrived from %s is not the protocol of perfpersistd: is another "
			   "program listening there?",
			   p->socket);
}

static struct request *find_request(struct perfpersist *p, uint32_t serial)
{
	struct request *req;

	TAILQ_FOREACH(req, &p->requests, entry)
	if (req->sent && req->serial == serial)
		return req;
	return NULL;
}

/* Reports why a request failed. If req is NULL, or a watch that has begun, the connection ends. */
static int deliver_error(struct perfpersist *p, struct request *req, const struct pp_msg_error *m)
{
	int r;

	if (m->error <= 0 || m->error > 4095)
		return malformed(p, -EBADMSG);
	r = client_fail(-m->error, "%s", *m->message ? m->message : strerror(m->error));
	/* A watcher must not believe that nothing happens. */
	if (!req || req->goes_on)
		return r;
	finish(p, req, r);
	return 1;
}

/* Passes a decoded packet to its request. 1: a callback ran; 0: none did; negative: the connection
 * ends. */
static int deliver(struct perfpersist *p, const struct pp_header *h, struct pp_fds *fds)
{
	struct request *req = find_request(p, h->serial);
	int outcome;

	if (h->opcode == PP_OP_ERROR && (req || h->serial == 0) && fds->n == 0)
		return deliver_error(p, req, &p->body->error);
	if (!req || h->opcode != (req->op | PP_OP_REPLY) ||
	    (fds->n && req->op != PP_OP_OPEN && req->op != PP_OP_WAKEUP &&
	     req->op != PP_OP_SIDEBAND && req->op != PP_OP_ADOPT && req->op != PP_OP_CLAIM &&
	     req->op != PP_OP_DESCRIPTORS && req->op != PP_OP_AUXTRACE))
		return malformed(p, -EBADMSG);
	outcome = request_reply(req, p->body, fds);
	if (outcome == REQUEST_GOES_ON)
		return 1;
	if (outcome == REQUEST_MORE) { /* the next page is requested at the end of the queue */
		TAILQ_REMOVE(&p->requests, req, entry);
		TAILQ_INSERT_TAIL(&p->requests, req, entry);
		req->sent = false;
		req->serial = 0;
		return flush(p);
	}
	finish(p, req, outcome);
	return 1;
}

/* Reads one packet. 1: a callback ran; 0: none did; -EAGAIN: no packet; other errors end the
 * connection. */
static int receive(struct perfpersist *p)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct pp_header h;
	ssize_t size;
	int r;

	size = pp_packet_receive(p->fd, p->packet, PP_PACKET_MAX, PP_FDS_MAX, &fds, MSG_DONTWAIT);
	if (size == -EAGAIN)
		return -EAGAIN;
	if (size == -EBADMSG)
		return malformed(p, -EBADMSG);
	if (size == -EMFILE)
		return client_fail(-EMFILE,
				   "cannot take the descriptors that perfpersistd sent: this "
				   "process has too many open files, so raise its limit (ulimit "
				   "-n), or a security module refuses them");
	if (size <= 0)
		return client_fail(
			-ECONNRESET,
			"perfpersistd at %s closed the connection: it was stopped or "
			"restarted; connect anew and look whether the request was carried "
			"out",
			p->socket);
	r = pp_decode(p->packet, (size_t)size, fds.n, true, &h, p->body);
	return r < 0 ? malformed(p, r) : deliver(p, &h, &fds);
}

static int dispatch_direct(struct perfpersist *p)
{
	struct request *req;
	int ran = 0;

	while (ran < PACKETS_PER_DISPATCH && (req = TAILQ_FIRST(&p->requests))) {
		finish(p, req,
		       p->saved ? saved_run(p->saved, p->saved_fd, req)
				: direct_run(p->registry, req));
		ran++;
	}
	return ran;
}

_public_ int perfpersist_dispatch(struct perfpersist *p)
{
	int ran = 0, got = 0;

	if (!p->socket)
		return dispatch_direct(p);
	for (int i = 0; i < PACKETS_PER_DISPATCH && got >= 0; i++) {
		got = receive(p);
		if (got > 0)
			ran += got;
	}
	if (got >= 0 || got == -EAGAIN) /* read what arrived, then send what is queued */
		got = flush(p);
	if (got < 0)
		end(p, got);
	if (p->ended) {
		finish_all(p);
		return -ECONNRESET;
	}
	return ran;
}

_public_ int perfpersist_fd(struct perfpersist *p)
{
	return p->socket ? p->fd : -1;
}

_public_ short perfpersist_events(struct perfpersist *p)
{
	struct request *last = TAILQ_LAST(&p->requests, request_list);

	if (!p->socket)
		return 0;
	return last && !last->sent ? POLLIN | POLLOUT : POLLIN;
}

/* Waits for the socket or a signal. */
static void wait_for_socket(struct perfpersist *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = perfpersist_events(p) };
	uint64_t end = pp_clock_ns(CLOCK_MONOTONIC) + LOOK_NS;

	while (poll(&pfd, 1, 0) == 0) {
		if (pp_clock_ns(CLOCK_MONOTONIC) >= end) {
			poll(&pfd, 1, -1);
			return;
		}
		sched_yield();
	}
}

void connection_wait(struct perfpersist *p, const bool *done)
{
	while (!*done) {
		if (p->socket)
			wait_for_socket(p);
		perfpersist_dispatch(p);
	}
}
