/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lifecycle.c, completion.c and reconcile.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

/* An order under way or waiting, and the event that it is about. */
struct job {
	struct order order;    /* first: an order of ours is a job */
	struct event *event;   /* RIGHTS, SIDEBAND: none */
	struct waiter *waiter; /* RIGHTS: none */
	struct pp_spec spec;   /* what the order's points at */
	struct packed_event *parsed;
	uint32_t set;	 /* CHANGE: of rings, before */
	uint64_t raised; /* CHANGE, CPUS: bytes that were charged for it */
};

static inline struct job *job_of(struct order *order)
{
	return (struct job *)order;
}

void job_free(struct job *job);

void lifecycle_notify(struct lifecycle *l, enum pp_notice_kind kind, const struct event *e);

/* The completions of a job, which has left the queue; each frees it. `answer` NULL: a reconciliation
 * found that it was done, and has told the model already. */
void job_done(struct lifecycle *l, struct job *job, const struct pp_answer *answer);
void job_failed(struct lifecycle *l, struct job *job, int error, const char *sentence);

/* Who has the rings of this event if it is deleted: the oldest of their other names, or NULL. */
struct event *lifecycle_successor(const struct lifecycle *l, const struct event *e);

/* The event is not there any more: it leaves the model. */
void lifecycle_forget(struct lifecycle *l, struct event *e);

/* The hooks of a reconciliation. */
void reconcile_begin(struct lifecycle *l);
int reconcile_found(struct lifecycle *l, const struct pp_event *truth);
int reconcile_held(struct lifecycle *l, const struct pp_orphans *orphans);
void reconcile_end(struct lifecycle *l);
