// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine's loop: the broker's connection, signals, and what is due. exchange.h has what comes on the connection. */
#include "daemon/engine/server.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include "daemon/accept.h"
#include "daemon/engine/event/adopt.h"
#include "daemon/engine/event/ends.h"
#include "daemon/engine/exchange.h"
#include "daemon/engine/heap.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/reaper.h"
#include "proto/macro.h"

struct server {
	int listener, signals;
	struct accept_rule broker;
	bool stop;
	struct exchange exchange;
};

/* What it has begun for the broker ends with the broker. */
static void disconnect(struct server *s)
{
	s->exchange.connection = close_fd(s->exchange.connection);
	event_forget_adoption(0);
	ends_forget(0);
}

/* Sent unasked. */
static void send_ended(uint64_t id, void *userdata)
{
	struct server *s = userdata;

	if (s->exchange.connection < 0)
		return;
	answer_begin(&s->exchange, 0, PP_ANSWER_ENDED);
	s->exchange.answer.event.id = id;
	if (answer_send(&s->exchange) < 0)
		disconnect(s);
}

/* Sent unasked: the broker adjusts its charges. */
static void send_released(const struct pp_orphans *orphans, void *userdata)
{
	struct server *s = userdata;

	if (s->exchange.connection < 0)
		return;
	answer_begin(&s->exchange, 0, PP_ANSWER_RELEASED);
	s->exchange.answer.orphans = *orphans;
	if (answer_send(&s->exchange) < 0)
		disconnect(s);
}

/* ── the loop ───────────────────────────────────────────────────────────────────────────── */

static void take_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGCHLD) {
			reaper_collect();
			orphans_hurry();
		} else {
			s->stop = true;
		}
}

/* Half of systemd's watchdog interval, in milliseconds; -1: no watchdog. */
static int watchdog_interval(void)
{
	uint64_t usec;

	return sd_watchdog_enabled(0, &usec) > 0 ? (int)(usec / 2000) : -1;
}

/* Milliseconds until something is due; -1: nothing is. */
static int next_wakeup(int watchdog)
{
	int times[] = { watchdog, orphans_timeout(), ends_timeout(), heap_timeout() }, next = -1;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i] >= 0 && (next < 0 || times[i] < next))
			next = times[i];
	return next;
}

static void take_connection(struct server *s)
{
	int before = s->exchange.connection;

	accept_instead(s->listener, &s->broker, &s->exchange.connection);
	if (s->exchange.connection == before)
		return;
	event_forget_adoption(0);
	ends_forget(0);
}

static int serve_once(struct server *s, int watchdog)
{
	struct pollfd fds[] = {
		{ s->signals, POLLIN, 0 },
		{ s->listener, POLLIN, 0 },
		{ s->exchange.connection, POLLIN, 0 }, /* < 0: ignored by poll */
		{ ends_fd(), POLLIN, 0 },	       /* likewise */
	};
	int n;

	kernel_btf_forget();
	n = poll(fds, ARRAY_SIZE(fds), next_wakeup(watchdog));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		heap_trim();
	else
		heap_used();
	if (fds[0].revents)
		take_signals(s);
	/* Orders that were sent before their broker died are carried out before its successor's. */
	if (fds[2].revents && exchange_serve(&s->exchange) < 0)
		disconnect(s);
	else if (!fds[2].revents && fds[1].revents)
		take_connection(s);
	reaper_collect(); /* it may be time for the next try: what is not reaped is an orphan */
	orphans_look(send_released, s);
	ends_look(send_ended, s);
	return 0;
}

int serve(int listener, int signals, const struct accept_rule *broker)
{
	_cleanup_free_ struct server *s = calloc(1, sizeof(*s));
	int watchdog = watchdog_interval(), r = 0;

	if (!s)
		return -ENOMEM;
	s->listener = listener;
	s->signals = signals;
	s->exchange.connection = -EBADF;
	s->broker = *broker;
	s->exchange.broker = broker->uid;
	sd_notify(0, "READY=1\nSTATUS=waiting for orders");
	while (!s->stop && r >= 0) {
		r = serve_once(s, watchdog);
		if (watchdog >= 0)
			sd_notify(0, "WATCHDOG=1");
	}
	sd_notify(0, "STOPPING=1");
	disconnect(s);
	return r;
}
