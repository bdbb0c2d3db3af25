// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads orders, answers them, and lists what there is. See exchange.h; orders.h has what they do. */
#include "daemon/engine/exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/engine/event/arm.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/trigger.h"
#include "daemon/engine/orders.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/log.h"
#include "proto/macro.h"

void answer_begin(struct exchange *x, uint64_t serial, enum pp_answer_type type)
{
	x->answer = (struct pp_answer){
		.abi = PP_ORDER_ABI,
		.type = type,
		.serial = serial,
	};
}

int answer_send(struct exchange *x)
{
	int r = pp_packet_send(x->connection, &x->answer, sizeof(x->answer), x->fds.fd, x->fds.n);

	pp_fds_close(&x->fds);
	return r;
}

void answer_tape(struct exchange *x, uint64_t serial, const struct tape *tape)
{
	answer_begin(x, serial, PP_ANSWER_TAPE);
	x->answer.orphans.id = tape->id;
	memcpy(x->answer.orphans.ns, tape->event.spec.ns, sizeof(x->answer.orphans.ns));
	x->answer.event = tape->event;
	x->answer.by = tape->by;
}

/* ── listing events and orphans ─────────────────────────────────────────────────────────── */

/* What has paused it, if that was a trigger. */
static int add_stopped_by(struct exchange *x, const char *path)
{
	const struct pp_event *e = &x->answer.event;

	if (!pp_is_paused_by_trigger(e))
		return 0;
	return event_stopped_by(path, &x->answer.by);
}

static int add_all(struct exchange *x, const char *path)
{
	int r = 0;

	if (x->answer.event.spec.flags & PP_EVENT_TRIGGER)
		r = trigger_read(path, &x->answer.trigger);
	if (r >= 0 && x->answer.event.spec.flags & PP_EVENT_BOUND)
		r = event_target(path, &x->answer.target);
	return r < 0 ? r : add_stopped_by(x, path);
}

static int send_found(const struct pp_event *event, void *userdata)
{
	char name[2 * PP_NAME_SIZE], path[PINS_PATH_SIZE];
	struct exchange *x = userdata;
	int r;

	answer_begin(x, x->order.serial, PP_ANSWER_FOUND);
	x->answer.event = *event;
	pins_event(event->origin, path);
	r = add_all(x, path);
	snprintf(name, sizeof(name), "%s/%s", event->spec.ns, event->spec.name);
	if (r < 0)
		return event_not_understood(name, path, r);
	order_watch_target(&x->answer);
	return answer_send(x);
}

static int send_held(const struct pp_orphans *orphans, void *userdata)
{
	struct exchange *x = userdata;

	answer_begin(x, x->order.serial, PP_ANSWER_HELD);
	x->answer.orphans = *orphans;
	return answer_send(x);
}

static int send_tape(const struct tape *tape, void *userdata)
{
	struct exchange *x = userdata;

	answer_tape(x, x->order.serial, tape);
	return answer_send(x);
}

static int enumerate(struct exchange *x)
{
	int r = names_foreach(send_found, x);

	if (r >= 0)
		r = orphans_foreach(send_held, x);
	if (r >= 0)
		r = tapes_foreach(send_tape, x);
	answer_begin(x, x->order.serial, PP_ANSWER_DONE);
	return r;
}

/* ── one order ──────────────────────────────────────────────────────────────────────────── */

static int read_event(struct exchange *x)
{
	char path[PINS_PATH_SIZE];
	int r = names_read(x->order.id, &x->answer.event);

	if (r < 0)
		return r;
	pins_event(x->answer.event.origin, path);
	return add_stopped_by(x, path);
}

/*
 * What has become of an event that is changed in place. If that cannot be read, the order is done
 * all the same, so no answer is right: the connection ends, and the broker's next enumeration
 * decides the order.
 */
static int read_back(struct exchange *x)
{
	int r = pp_order_is_in_place(x->order.type) ? read_event(x) : 0;

	if (r < 0)
		log_error("Cannot read the changed event with id %llu: %s; the broker's "
			  "connection is closed.",
			  (unsigned long long)x->order.id, strerror(-r));
	return r;
}

/* An order that fails may have done a part: the event is not armed any more, for example. */
static void read_what_is_left(struct exchange *x)
{
	if (!pp_order_is_in_place(x->order.type) || read_event(x) >= 0)
		return;
	x->answer.event = (struct pp_event){};
	x->answer.by = (struct pp_fired){};
}

static int answer(struct exchange *x)
{
	struct pp_orphans orphans;
	struct failure f = {};
	int r;

	if (x->order.type == PP_ORDER_ENUMERATE)
		return enumerate(x);
	answer_begin(x, x->order.serial, PP_ANSWER_DONE);
	r = order_carry_out(x, &f);
	if (r >= 0)
		return read_back(x);
	orphans = x->answer.orphans;
	answer_begin(x, x->order.serial, PP_ANSWER_FAILED);
	if (x->order.type == PP_ORDER_CHANGE || x->order.type == PP_ORDER_PAUSE)
		x->answer.orphans = orphans; /* rings that were replaced before it failed */
	x->answer.error = -r;
	memcpy(x->answer.sentence, f.sentence, sizeof(x->answer.sentence));
	read_what_is_left(x);
	return 0;
}

/* A packet must have exactly its type's size: else bytes of an earlier one would be read. */
static int check_packet(const struct pp_order *order, size_t n)
{
	if (n < offsetof(struct pp_order, parsed) || n != pp_order_size(order->type))
		return -EBADMSG;
	return pp_order_check(order);
}

int exchange_serve(struct exchange *x)
{
	ssize_t n = recv(x->connection, &x->order, sizeof(x->order), MSG_TRUNC | MSG_CMSG_CLOEXEC);
	int r;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (check_packet(&x->order, n) < 0) {
		log_error("The broker sent a malformed order; its connection is closed.");
		return -EBADMSG;
	}
	r = answer(x);
	return r < 0 ? r : answer_send(x);
}
