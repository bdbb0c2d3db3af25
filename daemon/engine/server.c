// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine's loop. Knows orders and answers, not how they are carried out. */
#include "daemon/engine/server.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/accept.h"
#include "daemon/engine/budget.h"
#include "daemon/engine/event/adopt.h"
#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/describe.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/handout.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/tapes.h"
#include "daemon/engine/sideband.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "daemon/order.h"
#include "proto/macro.h"
#include "proto/packet.h"

struct server {
	int listener, signals, connection;
	struct accept_rule broker;
	bool stop;
	struct pp_order order; /* too large for the stack */
	struct pp_answer answer;
	struct pp_fds fds; /* sent with it, then closed */
};

/* What it has begun for the broker ends with the broker. */
static void disconnect(struct server *s)
{
	s->connection = close_fd(s->connection);
	event_forget_adoption(0);
}

static void answer_begin(struct server *s, uint64_t serial, enum pp_answer_type type)
{
	s->answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = type,
		.serial = serial,
	};
}

static int answer_send(struct server *s)
{
	int r = pp_packet_send(s->connection, &s->answer, sizeof(s->answer), s->fds.fd, s->fds.n);

	pp_fds_close(&s->fds);
	return r;
}

/* ── listing events and orphans ─────────────────────────────────────────────────────────── */

/* What has paused it, if that was a trigger. */
static int add_stopped_by(struct server *s, const char *path)
{
	const struct pp_event *e = &s->answer.event;

	if (!pp_is_paused_by_trigger(e))
		return 0;
	return event_stopped_by(path, &s->answer.by);
}

static int add_all(struct server *s, const char *path)
{
	int r = 0;

	if (s->answer.event.spec.flags & PP_EVENT_TRIGGER)
		r = trigger_read(path, &s->answer.trigger);
	return r < 0 ? r : add_stopped_by(s, path);
}

static int send_found(const struct pp_event *event, void *userdata)
{
	char name[2 * PP_NAME_SIZE], path[PINS_PATH_SIZE];
	struct server *s = userdata;
	int r;

	answer_begin(s, s->order.serial, PP_ANSWER_FOUND);
	s->answer.event = *event;
	pins_event(event->origin, path);
	r = add_all(s, path);
	snprintf(name, sizeof(name), "%s/%s", event->spec.ns, event->spec.name);
	return r < 0 ? event_not_understood(name, path, r) : answer_send(s);
}

static int send_held(const struct pp_orphans *orphans, void *userdata)
{
	struct server *s = userdata;

	answer_begin(s, s->order.serial, PP_ANSWER_HELD);
	s->answer.orphans = *orphans;
	return answer_send(s);
}

static void answer_tape(struct server *s, uint64_t serial, const struct tape *tape)
{
	answer_begin(s, serial, PP_ANSWER_TAPE);
	s->answer.orphans.id = tape->id;
	memcpy(s->answer.orphans.ns, tape->event.spec.ns, sizeof(s->answer.orphans.ns));
	s->answer.event = tape->event;
	s->answer.by = tape->by;
}

static int send_tape(const struct tape *tape, void *userdata)
{
	struct server *s = userdata;

	answer_tape(s, s->order.serial, tape);
	return answer_send(s);
}

static int enumerate(struct server *s)
{
	int r = names_foreach(send_found, s);

	if (r >= 0)
		r = orphans_foreach(send_held, s);
	if (r >= 0)
		r = tapes_foreach(send_tape, s);
	answer_begin(s, s->order.serial, PP_ANSWER_DONE);
	return r;
}

/* Sent unasked: the broker adjusts its charges. */
static void send_released(const struct pp_orphans *orphans, void *userdata)
{
	struct server *s = userdata;

	if (s->connection < 0)
		return;
	answer_begin(s, 0, PP_ANSWER_RELEASED);
	s->answer.orphans = *orphans;
	if (answer_send(s) < 0)
		disconnect(s);
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

static int create(struct server *s, struct failure *f)
{
	const struct pp_order *o = &s->order;
	int r = budget_check(&o->spec, f);

	if (r >= 0)
		r = event_create(&o->spec, &o->parsed, &o->trigger, o->what, &o->allowance,
				 s->broker.uid, &s->answer.event, f);
	if (r < 0)
		return r;
	s->answer.trigger = o->trigger;
	budget_add(&s->answer.event);
	crowd_add(&s->answer.event);
	return 0;
}

/* ── adoptions ──────────────────────────────────────────────────────────────────────────── */

static int adopt(struct server *s, struct failure *f)
{
	const struct pp_order *o = &s->order;
	int r = budget_check(&o->spec, f);

	if (r >= 0)
		r = event_adopt(&o->spec, &o->parsed, &o->allowance, s->broker.uid,
				&s->answer.event, &s->fds.fd[0], f);
	if (r >= 0)
		s->fds.n = 1;
	return r;
}

static int attach(struct server *s, struct failure *f)
{
	const struct pp_order *o = &s->order;
	int r = event_attach(o->id, o->targets, o->what & ~PP_ATTACH_MORE, o->what & PP_ATTACH_MORE,
			     &s->answer.event, f);

	if (r <= 0)
		return r;
	budget_add(&s->answer.event);
	crowd_add(&s->answer.event);
	return 0;
}

/* ── triggers ───────────────────────────────────────────────────────────────────────────── */

/* A second set of rings, beside the first and its catalog. */
static int check_second_set(uint64_t id, struct failure *f)
{
	struct pp_event event;
	int r = names_read(id, &event);

	if (r < 0)
		return names_not_found(id, r, f);
	if (event.now & (PP_NOW_ARMED | PP_NOW_TURNED | PP_NOW_CLOSING))
		return 0;
	event.spec.cpus = event.rings;
	event.spec.flags &= ~PP_EVENT_ALL_CPUS;
	return budget_check(&event.spec, f);
}

static int arm(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(s->order.id, path, f);

	if (r >= 0 && s->order.what & PP_ARM_SWAP)
		r = check_second_set(s->order.id, f);
	if (r >= 0)
		r = event_arm(path, s->broker.uid, s->order.what, f);
	budget_recount();
	return r;
}

/* The event itself is the tape. */
static int read_frozen(const char *path, struct tape *ret)
{
	int r = event_read(path, &ret->event);

	ret->id = ret->event.id;
	return r < 0 ? r : event_turned_by(path, &ret->by);
}

/* Told before the order's answer; if that fails, the next enumeration tells it. */
static int tell_tape(struct server *s, const char *path, uint64_t id)
{
	struct pp_answer answer = s->answer;
	struct tape tape;
	int r = id ? tapes_read(id, &tape) : read_frozen(path, &tape);

	if (r >= 0) {
		answer_tape(s, 0, &tape);
		if (id)
			s->answer.orphans = answer.orphans;
		r = answer_send(s);
	}
	s->answer = answer;
	return r;
}

static int turn_at(struct server *s, const char *path, uint32_t what, struct failure *f)
{
	struct pp_orphans *orphans = &s->answer.orphans;
	int r = event_turn(path, s->broker.uid, what, orphans, f);

	budget_recount();
	/* A tape may be there although what came after it failed. */
	if ((r == 1 || orphans->id) && tell_tape(s, path, orphans->id) < 0)
		return fail(f, EIO, "Cannot tell the broker of a tape.");
	return r;
}

static int turn(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(s->order.id, path, f);

	return r < 0 ? r : turn_at(s, path, s->order.what, f);
}

static int release(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = tapes_release(s->order.id);

	if (r == -ENOENT && names_find(s->order.id, path) >= 0)
		return event_thaw(path, s->broker.uid, f);
	return r < 0 ? fail(f, -r, "Cannot release the tape with id %llu: %s.",
			    (unsigned long long)s->order.id, strerror(-r))
		     : 0;
}

/* What changes an event loads programs without a tape: a window ends, and a turn that is due comes
 * first. */
static int disarm(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(s->order.id, path, f), state;

	if (r < 0)
		return r;
	for (unsigned i = 0; i < 4; i++) {
		state = event_arm_state(path);
		if (state == ARM_CLOSING) {
			r = event_close(path, true);
			if (r >= 0 || r == -ENOENT)
				continue;
			return fail(f, -r, "Cannot end the window of '%s': %s.", path,
				    strerror(-r));
		}
		if (state == ARM_TURNED || state == ARM_STOPPED)
			r = turn_at(s, path, 0, f);
		else if (state == ARM_READY)
			r = event_disarm(path, s->broker.uid, f);
		else if (state == ARM_FROZEN)
			return fail(
				f, EBUSY,
				"A trigger has frozen the event with id %llu, which has no second "
				"set of buffers; it can be changed when that is saved.",
				(unsigned long long)s->order.id);
		else
			return state < 0 ? fail(f, -state, "Cannot read the pins of '%s': %s.",
						path, strerror(-state))
					 : 0;
		if (r != -EBUSY) /* that: it fired meanwhile */
			break;
	}
	budget_recount();
	return MIN(r, 0);
}

/* Its descriptors are another's now. No trigger may turn it any more. */
static int give_back(struct server *s, struct failure *f)
{
	struct pp_answer *a = &s->answer;
	int r = disarm(s, f);

	return r < 0 ? r : names_give_back(s->order.id, &a->event, &a->orphans, f);
}

static int delete (struct server *s, struct failure *f)
{
	struct pp_answer *a = &s->answer;
	int r;

	if (event_forget_adoption(s->order.id))
		return 0;
	r = s->order.what & PP_DELETE_CLAIMED
		    ? give_back(s, f)
		    : names_delete(s->order.id, &s->order.allowance, s->broker.uid, &a->event,
				   &a->orphans, f);
	if (r < 0) {
		crowd_recount();
		return r;
	}
	crowd_remove(a->event.id);
	if (a->orphans.id) {
		budget_subtract(&a->event);
	} else if (a->event.memory) { /* a successor has it now */
		budget_recount();
		crowd_recount();
	}
	return r;
}

static int hand_out(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(s->order.id, path, f);

	if (r >= 0)
		r = event_hand_out(path, s->order.what, &s->fds, &s->answer.total, f);
	if (r < 0)
		return r;
	r = names_read(s->order.id, &s->answer.event);
	if (r < 0)
		pp_fds_close(&s->fds);
	return r < 0 ? names_not_found(s->order.id, r, f) : 0;
}

static int describe(struct server *s, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(s->order.id, path, f);

	if (r >= 0)
		r = event_describe_parts(path, s->broker.uid, &s->fds.fd[0], f);
	if (r >= 0)
		s->fds.n = 1;
	return r;
}

/* The new rings exist before the old ones go: both must fit. */
static int check_change(const struct pp_order *o, struct failure *f)
{
	struct pp_event event;
	int r;

	if (!(o->what & PP_CHANGE_BUFFER))
		return 0;
	r = names_read(o->id, &event);
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu in the registry: %s.",
			    (unsigned long long)o->id, strerror(-r));
	event.spec.cpus = event.rings;
	event.spec.flags &= ~PP_EVENT_ALL_CPUS;
	event.spec.data_size = o->spec.data_size;
	return budget_check(&event.spec, f);
}

static int change(struct server *s, struct failure *f)
{
	const struct pp_order *o = &s->order;
	int r = check_change(o, f);

	if (r >= 0)
		r = disarm(s, f);
	if (r >= 0)
		r = event_change(o->id, o->what, &o->spec, &o->parsed, &o->allowance, s->broker.uid,
				 &s->answer.orphans, f);
	budget_recount();
	crowd_recount();
	return r;
}

static int carry_out(struct server *s, struct failure *f)
{
	const struct pp_order *o = &s->order;
	struct pp_event *event = &s->answer.event;
	int r;

	switch (o->type) {
	case PP_ORDER_CREATE:
		return create(s, f);
	case PP_ORDER_DELETE:
		return delete (s, f);
	case PP_ORDER_CHANGE:
		return change(s, f);
	case PP_ORDER_PAUSE:
		r = disarm(s, f);
		return r < 0 ? r : event_pause(o->id, o->what, &o->allowance, s->broker.uid, f);
	case PP_ORDER_ALIAS:
		return names_alias(o->id, &o->spec, event, f);
	case PP_ORDER_CPUS:
		r = disarm(s, f);
		budget_recount();
		return r < 0 ? r : event_cpus(o->id, &o->spec.cpus, s->broker.uid, f);
	case PP_ORDER_RIGHTS:
		return names_rights(&o->spec, s->broker.uid, f);
	case PP_ORDER_SIDEBAND:
		return sideband_open(&o->spec.cpus, o->what, s->broker.uid, &event->rings, &s->fds,
				     f);
	case PP_ORDER_ARM:
		return arm(s, f);
	case PP_ORDER_DISARM:
		return disarm(s, f);
	case PP_ORDER_AIM:
		return trigger_aim(o->id, o->targets, o->what, f);
	case PP_ORDER_TURN:
		return turn(s, f);
	case PP_ORDER_FIRE:
		return trigger_fire(o->id, o->what, &s->answer.by, f);
	case PP_ORDER_RELEASE:
		return release(s, f);
	case PP_ORDER_ADOPT:
		return adopt(s, f);
	case PP_ORDER_ATTACH:
		return attach(s, f);
	case PP_ORDER_HANDOUT:
		return hand_out(s, f);
	case PP_ORDER_DESCRIBE:
		return describe(s, f);
	default:
		return fail(f, EOPNOTSUPP, "The engine does not know orders of type %u.", o->type);
	}
}

/*
 * What has become of an event that is changed in place. If that cannot be read, the order is done
 * all the same, so no answer is right: the connection ends, and the broker's next enumeration
 * decides the order.
 */
static int read_back(struct server *s)
{
	char path[PINS_PATH_SIZE];
	int r;

	switch (s->order.type) {
	case PP_ORDER_CHANGE:
	case PP_ORDER_PAUSE:
	case PP_ORDER_CPUS:
	case PP_ORDER_ARM:
	case PP_ORDER_DISARM:
	case PP_ORDER_TURN:
		r = names_read(s->order.id, &s->answer.event);
		if (r >= 0) {
			pins_event(s->answer.event.origin, path);
			r = add_stopped_by(s, path);
		}
		if (r < 0)
			log_error("Cannot read the changed event with id %llu: %s; the broker's "
				  "connection is closed.",
				  (unsigned long long)s->order.id, strerror(-r));
		return r;
	default:
		return 0;
	}
}

static int answer(struct server *s)
{
	struct failure f = {};
	int r;

	if (s->order.type == PP_ORDER_ENUMERATE)
		return enumerate(s);
	answer_begin(s, s->order.serial, PP_ANSWER_DONE);
	r = carry_out(s, &f);
	if (r >= 0)
		return read_back(s);
	answer_begin(s, s->order.serial, PP_ANSWER_FAILED);
	s->answer.error = -r;
	memcpy(s->answer.sentence, f.sentence, sizeof(s->answer.sentence));
	return 0;
}

/* A packet must have exactly its type's size: else bytes of an earlier one would be read. */
static int check_packet(const struct pp_order *order, size_t n)
{
	if (n < offsetof(struct pp_order, parsed) || n != pp_order_size(order->type))
		return -EBADMSG;
	return pp_order_check(order);
}

/* One order, from packet to answer. < 0: the connection is unusable. */
static int serve_order(struct server *s)
{
	ssize_t n = recv(s->connection, &s->order, sizeof(s->order), MSG_TRUNC | MSG_CMSG_CLOEXEC);
	int r;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (check_packet(&s->order, n) < 0) {
		log_error("The broker sent a malformed order; its connection is closed.");
		return -EBADMSG;
	}
	r = answer(s);
	return r < 0 ? r : answer_send(s);
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
	int orphans = orphans_timeout();

	if (watchdog < 0 || orphans < 0)
		return MAX(watchdog, orphans);
	return MIN(watchdog, orphans);
}

static void take_connection(struct server *s)
{
	int before = s->connection;

	accept_instead(s->listener, &s->broker, &s->connection);
	if (s->connection != before)
		event_forget_adoption(0);
}

static int serve_once(struct server *s, int watchdog)
{
	struct pollfd fds[] = {
		{ s->signals, POLLIN, 0 },
		{ s->listener, POLLIN, 0 },
		{ s->connection, POLLIN, 0 }, /* < 0: ignored by poll */
	};

	if (poll(fds, ARRAY_SIZE(fds), next_wakeup(watchdog)) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		take_signals(s);
	/* Orders that were sent before their broker died are carried out before its successor's. */
	if (fds[2].revents && serve_order(s) < 0)
		disconnect(s);
	else if (!fds[2].revents && fds[1].revents)
		take_connection(s);
	reaper_collect(); /* it may be time for the next try: what is not reaped is an orphan */
	orphans_look(send_released, s);
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
	s->connection = -EBADF;
	s->broker = *broker;
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
