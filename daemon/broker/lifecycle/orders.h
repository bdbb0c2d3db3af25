/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The link to the engine: a queue of orders, one at a time under way. Each is answered or given up
 * exactly once. Users take turns in the queue: a user with many orders delays another user's order
 * by one at most. Owns the connection and restores it when it breaks. After each connect it first
 * asks the engine for all events. Must not know the purpose of an order, nor the effect of an
 * answer.
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
	uint32_t uid;			       /* the user whose turn it takes */
	const struct pp_spec *spec;	       /* the submitter's */
	const struct packed_event *parsed;     /* likewise */
	const struct pp_trigger_spec *trigger; /* likewise */
	const struct pp_msg_target *target;    /* likewise */
	const uint64_t *targets;	       /* likewise, */
	size_t n_targets;		       /* and so many */
	struct pp_allowance allowance;	       /* hooks.sending sets it */
	/* the submitter's; SIDEBAND, ADOPT, HANDOUT, DESCRIBE: empty, receives the descriptors of DONE */
	struct pp_fds *fds;
	unsigned sent;	/* number of sends; > 0: the engine may have acted */
	uint64_t round; /* the user's round; sorts the queue */
};

struct orders_hooks {
	/* A new connection: an enumeration of all events begins. */
	void (*syncing)(void *userdata);
	/* The engine has this event, which may be a trigger, or paused by one. A negative result breaks
	 * the link and causes a retry. */
	int (*found)(void *userdata, const struct pp_answer *found);
	/* Likewise for orphan rings, which belong to no event any more. */
	int (*held)(void *userdata, const struct pp_orphans *orphans);
	/* Orphan rings hold less than before. */
	void (*released)(void *userdata, const struct pp_orphans *orphans);
	/* The target of the event with this id has ended. */
	void (*ended)(void *userdata, uint64_t id);
	/* The engine has this tape, or has just made it. orphans: what it holds, if it is new. As found(). */
	int (*tape)(void *userdata, uint64_t id, const struct pp_event *event,
		    const struct pp_fired *by, const struct pp_orphans *orphans);
	/* The enumeration is complete. Orders sent before a break are still in the queue, and are
	 * sent again unless this callback removes them (orders_remove). */
	void (*synced)(void *userdata);
	/* Called before the order is sent. May be NULL. */
	void (*sending)(void *userdata, struct order *order);
	/* The engine answered this order (DONE, checked; or FAILED), and the order has left the
	 * queue. */
	void (*answered)(void *userdata, struct order *order, const struct pp_answer *answer);
	/* The engine was gone for too long; the order has left the queue. */
	void (*given_up)(void *userdata, struct order *order);
	/* The link went up or down, or patience ended: see orders_is_up, orders_is_patient. */
	void (*changed)(void *userdata);
};

struct orders;

/* Does not connect yet. 0; -errno. path: the engine's socket. */
int orders_new(sd_event *loop, const char *path, const struct orders_hooks *hooks, void *userdata,
	       struct orders **ret);
/* The queue must be empty: see orders_abandon. */
void orders_free(struct orders *o);

/* Begins to connect, and retries forever. 0; -errno. */
int orders_start(struct orders *o);

/* Connected, and the enumeration is complete. */
bool orders_is_up(const struct orders *o);

/* Up, or down for so short a time that waiting makes sense. */
bool orders_is_patient(const struct orders *o);

/* The pid of the engine, when it has told which events there are; 0: none. */
pid_t orders_engine_pid(const struct orders *o);

/* Queues the order behind its user's others. The caller still owns it and must keep it until it
 * leaves the queue. */
void orders_submit(struct orders *o, struct order *order);

/* The queue, for reconciliation. */
struct order *orders_first(const struct orders *o);
void orders_remove(struct orders *o, struct order *order);

/* Walks through the queue: after a rewind, each call of orders_next returns an order, or NULL at
 * the end. Any order may be removed meanwhile, also one that the walk has not reached. */
void orders_rewind(struct orders *o);
struct order *orders_next(struct orders *o);

/* Gives up every order and empties the queue; patience ends. */
void orders_abandon(struct orders *o);
