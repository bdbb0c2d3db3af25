/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The link to the engine: a queue of orders, one of them under way at a time, each answered
 * or given up exactly once. Users take turns in the queue: who has many orders in it does not
 * delay another's by more than one. Owns the connection and brings it back when it breaks; after
 * each new connection, and before anything else, the engine is asked for all events. What an
 * order is good for, and what an answer changes, others know.
 */
#pragma once

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/broker/lifecycle/parsed.h"
#include "daemon/order.h"
#include "proto/packet.h"

struct order {
	struct order *next;
	enum pp_order_type type;
	uint64_t id; /* as in struct pp_order, like what, spec and parsed */
	uint32_t what;
	uint32_t uid;			   /* whose turn it takes */
	const struct pp_spec *spec;	   /* stays the submitter's */
	const struct packed_event *parsed; /* likewise */
	struct pp_allowance allowance;	   /* filled in by hooks.sending */
	struct pp_fds *fds;		   /* likewise; SIDEBAND: empty, for what comes with DONE */
	unsigned sent;	/* how often it was sent; > 0: the engine may have acted */
	uint64_t round; /* of the turns that users take; the queue is sorted by it */
};

struct orders_hooks {
	/* A new connection: all events will be found anew. */
	void (*syncing)(void *userdata);
	/* The engine has this event. A negative result breaks the link, to try again. */
	int (*found)(void *userdata, const struct pp_event *event);
	/* Likewise these rings, which belong to no event any more. */
	int (*held)(void *userdata, const struct pp_orphans *orphans);
	/* Rings that belong to no event hold less than before. */
	void (*released)(void *userdata, const struct pp_orphans *orphans);
	/* All events have been found. Orders sent before a break are still in the queue, and
	 * are sent again unless this takes them out (orders_remove). */
	void (*synced)(void *userdata);
	/* This order is about to be sent. May be NULL. */
	void (*sending)(void *userdata, struct order *order);
	/* The engine answered this order (DONE, checked; or FAILED); it has left the queue. */
	void (*answered)(void *userdata, struct order *order, const struct pp_answer *answer);
	/* The engine has been away for too long; the order has left the queue. */
	void (*given_up)(void *userdata, struct order *order);
	/* The link went up or down, or patience ended: see orders_is_up, orders_is_patient. */
	void (*changed)(void *userdata);
};

struct orders;

/* Does not connect yet. 0; -errno. path: of the engine's socket. */
int orders_new(sd_event *loop, const char *path, const struct orders_hooks *hooks, void *userdata,
	       struct orders **ret);
/* Its queue must be empty by now: see orders_abandon. */
void orders_free(struct orders *o);

/* Starts to connect; goes on trying for ever. 0; -errno. */
int orders_start(struct orders *o);

/* Connected, and all events known. */
bool orders_is_up(const struct orders *o);

/* Up, or down for so short a time that waiting makes sense. */
bool orders_is_patient(const struct orders *o);

/* Of the engine that last answered on this connection; 0: none. */
pid_t orders_engine_pid(const struct orders *o);

/* Puts it into the queue, behind those of its user. It stays the caller's, and alive until it
 * leaves it. */
void orders_submit(struct orders *o, struct order *order);

/* The queue, for reconciliation. */
struct order *orders_first(const struct orders *o);
void orders_remove(struct orders *o, struct order *order);

/* A walk through the queue, one at a time: begun, and then each order in turn, or NULL. Any order
 * may be removed meanwhile, also those that the walk has not come to. */
void orders_rewind(struct orders *o);
struct order *orders_next(struct orders *o);

/* Takes every order out of the queue, as given up; patience is at its end. */
void orders_abandon(struct orders *o);
