// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine's loop. Knows orders and answers, not how they are carried out. */
#include "daemon/engine/server.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/engine/event.h"
#include "daemon/engine/reaper.h"
#include "daemon/log.h"
#include "daemon/order.h"
#include "proto/macro.h"

struct server {
	int listener, signals, connection;
	uid_t broker;
	bool stop;
	struct pp_answer answer; /* large, so not on the stack */
};

static void answer_begin(struct server *s, const struct pp_order *o, enum pp_answer_type type)
{
	s->answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = type,
		.serial = o->serial,
	};
}

static int answer_send(struct server *s)
{
	return send(s->connection, &s->answer, sizeof(s->answer), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

struct found {
	struct server *server;
	const struct pp_order *order;
};

static int send_found(const struct pp_event *event, void *userdata)
{
	const struct found *f = userdata;

	answer_begin(f->server, f->order, PP_ANSWER_FOUND);
	f->server->answer.event = *event;
	return answer_send(f->server);
}

static int enumerate(struct server *s, const struct pp_order *o)
{
	struct found f = { s, o };
	int r = event_foreach(send_found, &f);

	answer_begin(s, o, PP_ANSWER_DONE);
	return r;
}

static int failed(struct server *s, const struct pp_order *o, int r, const struct failure *f)
{
	answer_begin(s, o, PP_ANSWER_FAILED);
	s->answer.error = -r;
	memcpy(s->answer.sentence, f->sentence, sizeof(s->answer.sentence));
	return 0;
}

static int carry_out(struct server *s, const struct pp_order *o)
{
	struct failure f = {};
	int r;

	switch (o->type) {
	case PP_ORDER_ENUMERATE:
		return enumerate(s, o);
	case PP_ORDER_CREATE:
		answer_begin(s, o, PP_ANSWER_DONE);
		r = event_create(&o->spec, s->broker, &s->answer.event, &f);
		break;
	default:
		answer_begin(s, o, PP_ANSWER_DONE);
		r = event_delete(o->id, &s->answer.event, &f);
		break;
	}
	return r < 0 ? failed(s, o, r, &f) : 0;
}

/* One order, from packet to answer. < 0: the connection is of no use any more. */
static int serve_order(struct server *s)
{
	struct pp_order order;
	ssize_t n = recv(s->connection, &order, sizeof(order), MSG_TRUNC | MSG_CMSG_CLOEXEC);
	int r;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (n != sizeof(order) || pp_order_check(&order) < 0) {
		log_error("the broker sent what is no order; its connection is closed");
		return -EBADMSG;
	}
	r = carry_out(s, &order);
	return r < 0 ? r : answer_send(s);
}

static void accept_broker(struct server *s)
{
	_cleanup_close_ int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    (peer.uid != s->broker && peer.uid != 0)) {
		log_warning("a process that is not the broker was turned away");
		return;
	}
	close_fd(s->connection);
	s->connection = TAKE_FD(fd);
}

static void take_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGCHLD)
			reaper_collect();
		else
			s->stop = true;
}

/* Half of what systemd's watchdog allows, in milliseconds; -1: there is none. */
static int watchdog_interval(void)
{
	uint64_t usec;

	return sd_watchdog_enabled(0, &usec) > 0 ? (int)(usec / 2000) : -1;
}

static int serve_once(struct server *s, int timeout)
{
	struct pollfd fds[] = {
		{ s->signals, POLLIN, 0 },
		{ s->listener, POLLIN, 0 },
		{ s->connection, POLLIN, 0 }, /* < 0: ignored by poll */
	};

	if (poll(fds, ARRAY_SIZE(fds), timeout) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		take_signals(s);
	/* Orders that were sent before their broker died are carried out before its heir's. */
	if (fds[2].revents && serve_order(s) < 0)
		s->connection = close_fd(s->connection);
	else if (!fds[2].revents && fds[1].revents)
		accept_broker(s);
	return 0;
}

int serve(int listener, int signals, uid_t broker)
{
	struct server s = {
		.listener = listener,
		.signals = signals,
		.connection = -EBADF,
		.broker = broker,
	};
	int timeout = watchdog_interval(), r = 0;

	sd_notify(0, "READY=1\nSTATUS=waiting for orders");
	while (!s.stop && r >= 0) {
		r = serve_once(&s, timeout);
		if (timeout >= 0)
			sd_notify(0, "WATCHDOG=1");
	}
	sd_notify(0, "STOPPING=1");
	close_fd(s.connection);
	return r;
}
