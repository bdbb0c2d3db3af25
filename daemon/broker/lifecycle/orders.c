// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The connection to the engine and the queue of orders. Must not know registry or peers, nor the
 * contents of answers: orders-answer.c.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/lifecycle/orders-internal.h"
#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/macro.h"

#define BACKOFF_MAX_USEC (1000 * 1000ULL)
#define PATIENCE_USEC (10 * 1000 * 1000ULL)
#define ANSWERS_PER_TURN 64 /* a long enumeration must not keep peers waiting */

/* ── the link's state ───────────────────────────────────────────────────────────────────── */

void orders_set_link(struct orders *o, enum link_state to)
{
	enum link_state from = o->state;

	o->state = to;
	if (to == LINK_UP) {
		o->patient = true;
		o->backoff = TIMER_BACKOFF_MIN_USEC;
		timer_stop(o->patience);
	} else if (from == LINK_UP) {
		timer_start(o->patience, PATIENCE_USEC);
	}
	if ((from == LINK_UP) != (to == LINK_UP))
		o->hooks.changed(o->userdata);
}

/* Closes the connection and starts the retry timer; the first retry comes almost at once. */
static void break_link(struct orders *o)
{
	link_close(&o->link);
	o->under_way = false;
	o->engine_pid = 0;
	if (o->state == LINK_UP)
		log_warning("The engine is gone; reading goes on; reconnecting.");
	orders_set_link(o, LINK_DOWN);
	timer_start_backoff(o->retry, &o->backoff, BACKOFF_MAX_USEC);
}

/* ── sending ────────────────────────────────────────────────────────────────────────────── */

static int send_order(struct orders *o, const struct order *order)
{
	o->out.abi = PP_ORDER_ABI;
	o->out.type = order->type;
	o->out.serial = ++o->serial;
	o->out.id = order->id;
	o->out.what = order->what;
	o->out.allowance = order->allowance;
	if (order->spec)
		o->out.spec = *order->spec;
	else
		memset(&o->out.spec, 0, sizeof(o->out.spec));
	o->out.trigger = order->trigger ? *order->trigger : (struct pp_trigger_spec){};
	o->out.target = order->target ? *order->target : (struct pp_msg_target){};
	if (order->targets)
		memcpy(o->out.targets, order->targets, order->n_targets * sizeof(*order->targets));
	else
		memset(o->out.targets, 0, sizeof(o->out.targets));
	parsed_unpack(order->parsed, &o->out.parsed);
	if (send(o->link.fd, &o->out, pp_order_size(order->type), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	return 0;
}

/* Sends the first order if none is under way. */
static void pump(struct orders *o)
{
	int r;

	if (o->state != LINK_UP || o->under_way || !o->first)
		return;
	if (o->hooks.sending)
		o->hooks.sending(o->userdata, o->first);
	r = send_order(o, o->first);
	if (r < 0) {
		log_warning("Cannot send an order to the engine: %s.", strerror(-r));
		break_link(o);
		return;
	}
	o->first->sent++;
	o->round = o->first->round;
	o->under_way = true;
}

/*
 * Each order of a user gets the round after the user's previous order. A user without orders in the
 * queue gets the current round. So the queue alternates between users, one order of each.
 */
void orders_submit(struct orders *o, struct order *order)
{
	struct order **p = &o->first;

	order->round = o->round;
	for (struct order *other = o->first; other; other = other->next)
		if (other->uid == order->uid)
			order->round = other->round + 1;
	while (*p && (*p)->round <= order->round)
		p = &(*p)->next;
	order->next = *p;
	*p = order;
	pump(o);
}

struct order *orders_first(const struct orders *o)
{
	return o->first;
}

void orders_remove(struct orders *o, struct order *order)
{
	struct order **p = &o->first;

	while (*p != order) {
		assert(*p);
		p = &(*p)->next;
	}
	if (order == o->first)
		o->under_way = false;
	if (order == o->walk)
		o->walk = order->next;
	*p = order->next;
	order->next = NULL;
}

void orders_rewind(struct orders *o)
{
	o->walk = o->first;
}

struct order *orders_next(struct orders *o)
{
	struct order *order = o->walk;

	if (order)
		o->walk = order->next;
	return order;
}

void orders_abandon(struct orders *o)
{
	o->patient = false; /* waiters that are given up must not submit new orders */
	while (o->first) {
		struct order *order = o->first;

		orders_remove(o, order);
		o->hooks.given_up(o->userdata, order);
	}
}

/* ── connecting ─────────────────────────────────────────────────────────────────────────── */

static int on_io(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		 void *userdata)
{
	struct orders *o = userdata;

	for (unsigned i = 0; i < ANSWERS_PER_TURN && o->state != LINK_DOWN; i++) {
		int r = orders_take_answer(o);

		if (r == 0)
			break;
		if (r == -EBADMSG)
			log_error("The engine sent a malformed answer; reconnecting.");
		else if (r < 0 && r != -ECONNRESET && r != -ECANCELED)
			log_error("Cannot take the engine's answer: %s.", strerror(-r));
		if (r < 0)
			break_link(o);
		else
			pump(o);
	}
	return 0;
}

static int connect_link(struct orders *o)
{
	static const struct order enumerate = { .type = PP_ORDER_ENUMERATE };
	const int on = 1;
	int r = link_connect(&o->link, on_io, o);

	if (r < 0)
		return r;
	if (setsockopt(o->link.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	orders_set_link(o, LINK_SYNCING);
	o->hooks.syncing(o->userdata);
	return send_order(o, &enumerate);
}

static int on_retry(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct orders *o = userdata;
	int r = connect_link(o);

	if (r < 0) {
		log_debug("Cannot connect to the engine at %s: %s.", o->link.address.sun_path,
			  strerror(-r));
		break_link(o);
	}
	return 0;
}

static int on_patience(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct orders *o = userdata;

	log_error("The engine at %s does not answer; nothing can be created or deleted until it "
		  "does.",
		  o->link.address.sun_path);
	orders_abandon(o);
	o->hooks.changed(o->userdata);
	return 0;
}

int orders_start(struct orders *o)
{
	int r = timer_start(o->patience, PATIENCE_USEC);

	return r < 0 ? r : timer_start(o->retry, 0);
}

bool orders_is_up(const struct orders *o)
{
	return o->state == LINK_UP;
}

bool orders_is_patient(const struct orders *o)
{
	return o->patient;
}

pid_t orders_engine_pid(const struct orders *o)
{
	return o->state == LINK_UP ? o->engine_pid : 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

void orders_free(struct orders *o)
{
	if (!o)
		return;
	assert(!o->first);
	sd_event_source_disable_unref(o->retry);
	sd_event_source_disable_unref(o->patience);
	link_done(&o->link);
	free(o);
}

static void cleanup_orders(struct orders **o)
{
	orders_free(*o);
}

int orders_new(sd_event *loop, const char *path, const struct orders_hooks *hooks, void *userdata,
	       struct orders **ret)
{
	_cleanup_(cleanup_orders) struct orders *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->hooks = *hooks;
	o->userdata = userdata;
	o->backoff = TIMER_BACKOFF_MIN_USEC;
	o->patient = true;
	r = link_init(&o->link, loop, path);
	if (r >= 0)
		r = timer_add(loop, &o->retry, on_retry, o);
	if (r >= 0)
		r = timer_add(loop, &o->patience, on_patience, o);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(o);
	return 0;
}
