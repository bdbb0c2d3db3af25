/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost of events, charged to users. Before an order, an event is charged the most that its
 * rings can take; after it, their real size. The engine finds out how many programs a glob needs,
 * and keeps within the broker's allowance. Rings that belong to no event any more but are still
 * mapped are orphan rings: they stay charged until the engine reports that they are gone. The
 * engine's enumeration restores all charges.
 */
#pragma once

#include "daemon/broker/state/event.h"
#include "daemon/broker/state/quota.h"

struct charges {
	struct quota *quota; /* borrowed */
	struct charged_orphans {
		struct pp_orphans orphans;
		uint64_t seen; /* the last reconciliation that found them */
	} * orphans;	       /* sorted by id */
	size_t n_orphans, room;
};

/* Releases the charges of all orphan rings. */
void charges_done(struct charges *c);

/* The most bytes that an event of this spec takes, not counting its catalog; on these CPUs or, if
 * NULL, on the spec's. 0; -errno if the online CPUs cannot be read. */
int charges_estimate(const struct pp_spec *spec, const struct pp_cpumask *cpus, uint64_t *ret);

/* Charges the event's creator for the event, this memory, these programs and samples per second. 0;
 * -EDQUOT; -ENOMEM. */
int charges_begin(struct charges *c, struct event *e, uint64_t memory, uint32_t programs,
		  uint32_t samples);

/* Whether the limits of the successor's user and namespace permit the charges for e's rings. */
bool charges_may_inherit(const struct charges *c, const struct event *successor,
			 const struct event *gone);

/*
 * The present allowance for an order. An order is sent when the previous one has completed, so
 * nothing is spent twice. uid: the user to charge; programs: charged already.
 */
struct pp_allowance charges_allow(const struct charges *c, uint32_t uid, uint32_t programs);

/* How many perf events the event, whose rings are charged, can have beside them. */
uint32_t charges_perf_events(const struct charges *c, const struct event *e);

/* Charges an existing event to its creator, regardless of limits, by its real size; replaces its
 * earlier charges. 0; -ENOMEM. */
int charges_adopt(struct charges *c, struct event *e);

/* Whether charges_raise() would find room for so much. */
bool charges_have_room(const struct charges *c, const struct event *e, uint64_t memory);

/* Charges more memory for an order about the event. 0; -EDQUOT; -ENOMEM. */
int charges_raise(struct charges *c, struct event *e, uint64_t memory);

/* Charges so many samples a second, if that is more than the event has, for an order to change them.
 * 0; -EDQUOT; -ENOMEM. */
int charges_raise_samples(struct charges *c, struct event *e, uint32_t samples);

/* That order has completed; charges_lower() follows. */
void charges_drop_samples(struct event *e);

/* That order has completed: reduces the charge to the real size. */
void charges_lower(struct charges *c, struct event *e, uint64_t memory);

/* The same without such an order. */
void charges_settle(struct charges *c, struct event *e);

/* The event is gone, or never existed: releases its charges. */
void charges_end(struct charges *c, struct event *e);

/* This reconciliation found these orphan rings (bytes 0: they are gone). 0; -ENOMEM. */
int charges_hold(struct charges *c, const struct pp_orphans *orphans, uint64_t seen);

/* Known orphan rings hold less now. */
void charges_released(struct charges *c, const struct pp_orphans *orphans);

/* Releases the orphan rings that this reconciliation has not found. */
void charges_sweep(struct charges *c, uint64_t seen);
