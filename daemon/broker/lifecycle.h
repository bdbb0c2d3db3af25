/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of events: created, deleted, and found again. Owns registry and orders, and keeps
 * the one true to what the engine says; start-up, a broken link and a restarted engine take
 * the same way. Rights and limits have been checked by those who call.
 */
#ifndef PP_BROKER_LIFECYCLE_H
#define PP_BROKER_LIFECYCLE_H

#include "daemon/broker/orders.h"
#include "daemon/broker/registry.h"

/* How a creation or deletion ended. */
struct outcome {
	int error;		   /* 0, or a positive errno value */
	const char *sentence;	   /* with an error: one for people */
	const struct event *event; /* without: what was made, or what was deleted */
};

/* Who waits for it; done is called exactly once, and owns the waiter from then on. */
struct waiter {
	void (*done)(struct waiter *waiter, const struct outcome *outcome);
};

struct lifecycle {
	struct registry registry;
	struct orders *orders;
	uint64_t generation; /* of the reconciliation that runs, or ran last */
	bool synced;	     /* the registry has been filled once */

	void (*changed)(void *userdata); /* events, or the link, came or went */
	void *userdata;
};

/* l is all zeroes but for changed and userdata. 0; -errno. */
int lifecycle_init(struct lifecycle *l, sd_event *loop, const char *engine_path);
/* Ends what waits (ECANCELED) and frees everything. Accepts a half-made or empty one. */
void lifecycle_done(struct lifecycle *l);

/*
 * Reserves the name and orders the event. 0: waiter->done will be called, also from within;
 * -EEXIST (the name is there, or reserved); -EAGAIN (no engine); -ENOMEM.
 */
int lifecycle_create(struct lifecycle *l, const struct pp_spec *spec, struct waiter *waiter);

/* Likewise. -EBUSY (it is being created); -EALREADY (it is being deleted); -EAGAIN; -ENOMEM. */
int lifecycle_delete(struct lifecycle *l, struct event *e, struct waiter *waiter);

#endif
