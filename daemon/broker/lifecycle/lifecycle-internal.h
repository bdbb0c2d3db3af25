/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by lifecycle*.c, completion.c and reconcile.c only. */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

/* A running or waiting order, and its event. */
struct job {
	struct order order;    /* first: an order of ours is a job */
	struct event *event;   /* RIGHTS, SIDEBAND: none */
	struct waiter *waiter; /* RIGHTS: none */
	struct pp_spec spec;   /* the order points at this */
	struct packed_event *parsed;
	uint32_t set;			  /* CHANGE: the set of rings before */
	bool was_paused;		  /* CHANGE */
	uint64_t raised;		  /* CHANGE, CPUS, ARM, TURN: bytes charged for it */
	struct pp_trigger_spec trigger;	  /* CREATE: the order points at this, */
	struct pp_msg_target target;	  /* likewise, */
	uint64_t targets[PP_TARGETS_MAX]; /* AIM, ATTACH: and at this */
};

/* Orders that need no rest of the event, and block no others about it. */
static inline bool order_is_aside(const struct order *order)
{
	return order->type == PP_ORDER_CPUS || order->type == PP_ORDER_HANDOUT ||
	       order->type == PP_ORDER_DESCRIBE || order->type == PP_ORDER_AUX ||
	       (order->type >= PP_ORDER_ARM && order->type <= PP_ORDER_RELEASE);
}

/* Orders that only ask. Others may make new links for an event. */
static inline bool order_asks(const struct order *order)
{
	return order->type == PP_ORDER_HANDOUT || order->type == PP_ORDER_DESCRIBE ||
	       order->type == PP_ORDER_AUX;
}

/* Orders after which the event is in the registry. */
static inline bool order_makes_event(const struct order *order)
{
	return order->type == PP_ORDER_CREATE || order->type == PP_ORDER_ALIAS ||
	       (order->type == PP_ORDER_ATTACH && !(order->what & PP_ATTACH_MORE));
}

static inline struct job *job_of(struct order *order)
{
	return (struct job *)order;
}

/* spec and parsed are copied; each may be NULL. 0; -EAGAIN: the engine is away; -ENOMEM. */
int job_new(struct lifecycle *l, enum pp_order_type type, const struct pp_spec *spec,
	    const struct pp_parsed *parsed, struct job **ret);
/* The same for an order that leaves the event its state (order_is_aside()); charges it this memory. Also
 * -EBUSY: the event is being created or deleted; -EDQUOT. */
int job_new_aside(struct lifecycle *l, enum pp_order_type type, struct event *e,
		  const struct pp_spec *spec, uint64_t memory, struct job **ret);
/* Takes the job over. e, waiter: may be NULL. */
void job_submit(struct lifecycle *l, struct job *job, struct event *e, struct waiter *waiter);
void job_free(struct job *job);
void cleanup_job(struct job **job);

/* type: CREATE or ADOPT; fds: as in struct order. */
int lifecycle_begin(struct lifecycle *l, enum pp_order_type type, const struct pp_spec *spec,
		    const struct pp_parsed *parsed, const struct pp_trigger_spec *trigger,
		    const struct pp_msg_target *target, uint32_t program, struct pp_fds *fds,
		    struct waiter *waiter);

/* Orders the end of each event whose target has ended, if it was to end with it: once in a generation, as soon as no
 * other order is under way. */
void lifecycle_delete_ended(struct lifecycle *l);

/* what: as of DELETE. */
int lifecycle_order_end(struct lifecycle *l, struct event *e, uint32_t what, struct waiter *waiter);

/* Whether other names, including names under creation, share e's rings. */
bool lifecycle_has_other_names(const struct lifecycle *l, const struct event *e);

void lifecycle_notify(struct lifecycle *l, enum pp_notice_kind kind, const struct event *e);

/* The event is armed without a second set of rings. */
void lifecycle_log_no_swap(const struct event *e);

/* The completions of a job that has left the queue; each frees the job. `answer` NULL: a
 * reconciliation found the job done, and has updated the model already. */
void job_done(struct lifecycle *l, struct job *job, const struct pp_answer *answer);
void job_failed(struct lifecycle *l, struct job *job, int error, const char *sentence);
/* The same, and takes what the answer says of the event: a part of the order may be done. */
void job_failed_partly(struct lifecycle *l, struct job *job, const struct pp_answer *answer);

/* The successor that gets the rings if this event is deleted: the oldest of its other names, or
 * NULL. */
struct event *lifecycle_successor(const struct lifecycle *l, const struct event *e);

/* The event no longer exists: removes it from the model. */
void lifecycle_forget(struct lifecycle *l, struct event *e);

/* The hooks of a reconciliation. */
void reconcile_begin(struct lifecycle *l);
int reconcile_found(struct lifecycle *l, const struct pp_answer *found);
int reconcile_held(struct lifecycle *l, const struct pp_orphans *orphans);
void reconcile_end(struct lifecycle *l);
