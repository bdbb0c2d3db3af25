// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connections and the loop: one request, one answer, in turn. Never waits for a peer. */
#include "daemon/keeper/server.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "daemon/accept.h"
#include "daemon/keeper/areas.h"
#include "daemon/keeper/idle.h"
#include "daemon/keeper/keep.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/packet.h"

#define CONNECTIONS_MAX 64
#define EVENTS 64
/* Larger than any keeper's request, a newer version's too. */
#define REQUEST_SIZE_MAX (64U << 10)
#define REQUEST_SIZE_MIN offsetof(struct pp_keep_request, n_cpus)

struct connection {
	int fd; /* < 0: free */
};

struct server {
	int listener, epoll;
	bool exit_idle, ends, had_peer;
	struct idle idle;
	struct keep keep;
	struct areas areas;
	struct connection connection[CONNECTIONS_MAX];
	size_t n;
	union {
		struct pp_keep_request request;
		uint8_t packet[REQUEST_SIZE_MAX];
	};
	struct pp_fds fds;
	struct pp_keep_answer answer;
};

/* ── one request ────────────────────────────────────────────────────────────────────────── */

static size_t fds_wanted(const struct pp_keep_request *r)
{
	switch (r->type) {
	case PP_KEEP_RINGS:
		return r->n_cpus;
	case PP_KEEP_AREAS:
		return (size_t)r->n_cpus * (1 + (size_t)r->n_beside);
	case PP_KEEP_TASKS:
		return PP_KEEP_ITERATORS;
	default:
		return 0;
	}
}

/* False: the peer is unknown to us. */
static bool is_sound(const struct server *s, size_t size)
{
	const struct pp_keep_request *r = &s->request;

	if (size < REQUEST_SIZE_MIN)
		return false;
	if (r->abi != PP_KEEP_ABI)
		return (r->type == PP_KEEP_HELLO || r->type == PP_KEEP_END) && s->fds.n == 0;
	return size == sizeof(*r) && r->type >= PP_KEEP_HELLO && r->type <= PP_KEEP_AREAS_TAKE &&
	       r->n_cpus <= PP_KEEP_CPUS && s->fds.n == fds_wanted(r);
}

static int put_areas(struct server *s)
{
	const struct pp_keep_request *q = &s->request;
	int result = 0;

	if (!q->event || !q->n_cpus || q->what > 1)
		return -EINVAL;
	for (uint32_t i = 0; i < q->n_cpus; i++) {
		int r = areas_put(&s->areas, q->event, &q->cpus[i], q->aux_size, q->what,
				  s->fds.fd + i * (1 + q->n_beside), q->n_beside);

		if (r < 0 && !result)
			result = r; /* the others trace all the same */
	}
	return result;
}

static int carry_out_of_areas(struct server *s, int *ret_fd)
{
	const struct pp_keep_request *r = &s->request;

	switch (r->type) {
	case PP_KEEP_AREAS_HELD:
		areas_held(&s->areas, r->event, r->first, &s->answer);
		return 0;
	case PP_KEEP_AREAS:
		return put_areas(s);
	case PP_KEEP_AREAS_PAUSE:
		return r->what <= 1 ? areas_pause(&s->areas, r->event, r->what) : -EINVAL;
	case PP_KEEP_AREAS_DROP:
		areas_drop(&s->areas, r->event, r->first);
		return 0;
	default:
		return areas_take(&s->areas, r->event, r->first, ret_fd, &s->answer.size);
	}
}

static int carry_out(struct server *s, int *ret_fd)
{
	const struct pp_keep_request *r = &s->request;

	if (r->type >= PP_KEEP_AREAS_HELD)
		return carry_out_of_areas(s, ret_fd);

	switch (r->type) {
	case PP_KEEP_CPUS_HELD:
		keep_cpus(&s->keep, r->first, &s->answer);
		return 0;
	case PP_KEEP_RINGS:
		return keep_rings(&s->keep, r->cpus, r->n_cpus, s->fds.fd);
	case PP_KEEP_TASKS:
		return keep_tasks(&s->keep, s->fds.fd);
	case PP_KEEP_LIMIT:
		return keep_limit(&s->keep, r->max_memory);
	case PP_KEEP_TAKE:
		return keep_take(&s->keep, r->since, r->until, ret_fd, &s->answer.size);
	case PP_KEEP_END:
		s->ends = true;
		areas_done(&s->areas);
		return keep_drop(&s->keep);
	case PP_KEEP_DROP:
		return keep_drop(&s->keep);
	default:
		return 0;
	}
}

/* < 0: close the connection, as for a peer that does not take its answer. */
static int answer(struct server *s, int fd)
{
	_cleanup_close_ int taken = -EBADF;
	int r;

	s->answer = (struct pp_keep_answer){
		.abi = PP_KEEP_ABI,
		.serial = s->request.serial,
		.pid = (uint32_t)getpid(),
	};
	r = carry_out(s, &taken);
	if (r < 0 && r != -ENODATA)
		log_warning("Cannot carry out a request of type %u: %s.", s->request.type,
			    strerror(-r));
	s->answer.error = -r;
	keep_status(&s->keep, &s->answer.status);
	return pp_packet_send(fd, &s->answer, sizeof(s->answer), &taken, taken >= 0 ? 1 : 0);
}

static int serve_request(struct server *s, int fd)
{
	ssize_t n = pp_packet_receive(fd, s->packet, sizeof(s->packet), PP_FDS_MAX, &s->fds,
				      MSG_DONTWAIT);
	int r = -EBADMSG;

	if (n <= 0)
		return n == -EAGAIN ? 0 : n < 0 ? (int)n : -ECONNRESET;
	if (is_sound(s, (size_t)n))
		r = answer(s, fd);
	else
		log_error("A peer sent an invalid request; its connection is closed.");
	pp_fds_close(&s->fds);
	return r;
}

/* ── connections ────────────────────────────────────────────────────────────────────────── */

static void disconnect(struct server *s, struct connection *c)
{
	c->fd = close_fd(c->fd);
	s->n--;
}

static int listen_to(struct server *s, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static struct connection *free_place(struct server *s)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->connection[i].fd < 0)
			return &s->connection[i];
	return NULL;
}

static void accept_peer(struct server *s)
{
	const struct accept_rule rule = { .uid = geteuid() };
	_cleanup_close_ int fd = accept_from(s->listener, &rule, SOCK_NONBLOCK);
	struct connection *c = free_place(s);

	if (fd < 0)
		return;
	if (!c) {
		log_warning("Refused a connection: %d are open already.", CONNECTIONS_MAX);
		return;
	}
	if (listen_to(s, fd, c) < 0)
		return;
	c->fd = TAKE_FD(fd);
	s->n++;
	s->had_peer = true;
}

/* ── the loop ───────────────────────────────────────────────────────────────────────────── */

static bool is_connection(const struct server *s, const void *data)
{
	return data >= (const void *)s->connection &&
	       data < (const void *)(s->connection + CONNECTIONS_MAX);
}

static void serve_event(struct server *s, void *data)
{
	if (data == &s->listener) {
		accept_peer(s);
	} else if (data == &s->idle) {
		idle_wake(&s->idle);
	} else if (is_connection(s, data)) {
		struct connection *c = data;

		if (c->fd >= 0 && serve_request(s, c->fd) < 0)
			disconnect(s, c);
	}
}

/* Waits for a request or until the rings are due. The timer's slack lets the kernel choose the
 * cheapest moment. */
static int wait_for(const struct server *s, struct epoll_event *events)
{
	const struct keep_pause *pause = &s->keep.pause;

	if (!s->keep.keeping)
		return epoll_wait(s->epoll, events, EVENTS, -1);
	if (s->keep.behind) /* requests are handled between the steps */
		return epoll_wait(s->epoll, events, EVENTS, 0);
	prctl(PR_SET_TIMERSLACK, pause->most - pause->least + 1, 0, 0, 0);
	return epoll_wait(s->epoll, events, EVENTS, (int)(pause->least / 1000000));
}

static int serve_once(struct server *s)
{
	struct epoll_event events[EVENTS];
	int n = wait_for(s, events);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (keep_is_due(&s->keep))
		keep_wake(&s->keep);
	for (int i = 0; i < n && !s->ends; i++)
		serve_event(s, events[i].data.ptr);
	return 0;
}

static bool is_idle(const struct server *s)
{
	if (!s->exit_idle || s->n > 0)
		return false;
	return s->idle.gone ||
	       (!s->keep.keeping && s->areas.n == 0 && (s->had_peer || !s->idle.waiting));
}

static int server_init(struct server *s)
{
	int r;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->connection[i].fd = -EBADF;
	s->idle.watch = s->idle.timer = -EBADF;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return -errno;
	areas_init(&s->areas, keep_busy, &s->keep);
	r = keep_init(&s->keep);
	if (r < 0)
		return r;
	r = listen_to(s, s->listener, &s->listener);
	if (r < 0 || !s->exit_idle)
		return r;
	r = idle_init(&s->idle, s->listener);
	if (r == 0)
		r = listen_to(s, s->idle.timer, &s->idle);
	if (r == 0 && s->idle.watch >= 0)
		r = listen_to(s, s->idle.watch, &s->idle);
	return r;
}

static void server_done(struct server *s)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		close_fd(s->connection[i].fd);
	areas_done(&s->areas);
	keep_done(&s->keep);
	idle_done(&s->idle);
	close_fd(s->epoll);
}

int serve_keeping(int listener, bool exit_idle)
{
	static struct server s; /* static, because it is large */
	int r;

	s = (struct server){ .listener = listener, .exit_idle = exit_idle, .epoll = -EBADF };
	r = server_init(&s);
	if (r < 0)
		return r;
	while (r >= 0 && !s.ends && !is_idle(&s))
		r = serve_once(&s);
	server_done(&s);
	return r;
}
