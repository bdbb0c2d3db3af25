/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What events cost, charged to whom. An event is charged by what its rings will take at most,
 * before it is ordered; once they are there, by what they take. How many programs a glob comes to
 * the engine finds out, and keeps within what the broker allows. Rings that belong to no event
 * any more, and that somebody still has mapped, are orphan rings: charged until the engine says that
 * they are gone. All of it is found again from what the engine enumerates.
 */
#pragma once

#include "daemon/broker/state/event.h"
#include "daemon/broker/state/quota.h"

struct charges {
	struct quota *quota; /* borrowed */
	struct charged_orphans {
		struct pp_orphans orphans;
		uint64_t seen; /* the reconciliation that found it last */
	} * orphans;	       /* sorted by id */
	size_t n_orphans, room;
};

/* Releases all orphan rings. */
void charges_done(struct charges *c);

/* Bytes that an event of this spec takes at most, but for its catalog; on these CPUs, or, if
 * NULL, on those that the spec names. 0; -errno of finding out which are online. */
int charges_estimate(const struct pp_spec *spec, const struct pp_cpumask *cpus, uint64_t *ret);

/* Charges the event itself, so much memory, so many programs and samples a second to its creator.
 * 0; -EDQUOT; -ENOMEM. */
int charges_begin(struct charges *c, struct event *e, uint64_t memory, uint32_t programs,
		  uint32_t samples);

/* Whether the successor's user and namespace have room for what another's rings are charged for. */
bool charges_may_inherit(const struct charges *c, const struct event *successor,
			 const struct event *gone);

/*
 * How much the order may come to, as of now: an order is sent when the one before has ended, so
 * that nothing of this can be spent twice. uid: who is to be charged; programs: what was charged
 * beforehand.
 */
struct pp_allowance charges_allow(const struct charges *c, uint32_t uid, uint32_t programs);

/* The same for one that is there: over any limit, to who created it, and what it takes, whatever
 * was charged for it before. 0; -ENOMEM. */
int charges_adopt(struct charges *c, struct event *e);

/* More memory for an order about it. 0; -EDQUOT; -ENOMEM. */
int charges_raise(struct charges *c, struct event *e, uint64_t memory);

/* That order has ended: from what was charged to what it takes. */
void charges_lower(struct charges *c, struct event *e, uint64_t memory);

/* The same where there was none. */
void charges_settle(struct charges *c, struct event *e);

/* The event is gone, or never came: nothing is charged for it. */
void charges_end(struct charges *c, struct event *e);

/* These rings are held (bytes 0: no more), as of this reconciliation. 0; -ENOMEM. */
int charges_hold(struct charges *c, const struct pp_orphans *orphans, uint64_t seen);

/* Known orphan rings hold less now. */
void charges_released(struct charges *c, const struct pp_orphans *orphans);

/* Those that this reconciliation has not found are gone. */
void charges_sweep(struct charges *c, uint64_t seen);
