/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AUX areas: ensures that the keeper has those that the registry wants, and no others: of each
 * event with PP_EVENT_AUX one on each online CPU with a ring, of the CPU's present generation,
 * paused if the event is. The broker asks the keeper what it holds after each connect and orders
 * what is missing from the engine, event by event. Keeper, engine and broker may each die at any
 * moment; with the keeper goes what the areas held.
 *
 * The engine works on an order while the keeper answers requests; so what belongs to the order is
 * not the request's, which is keeper.out until it is answered.
 *
 * Clients' requests for copies wait here for the keeper's answer, one at a time, users in turn. A
 * copy makes a gap in the trace: so that readers cannot keep a PMU from tracing, an area then rests
 * for several times as long as the copy has taken.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"
#include "daemon/broker/link/keeper.h"

/* A request for a copy of one area. The caller owns it and embeds it in a larger struct. */
struct aux_taking {
	struct aux_taking *next;
	uint32_t uid;
	uint64_t origin; /* of the event */
	uint32_t cpu;

	/* Called when its turn comes: a copy of at most so many bytes is about to be made. < 0: it is
	 * not made; done gets that error. */
	int (*prepare)(struct aux_taking *taking, uint64_t bytes);
	/* Called exactly once, at the end. fd: on loan, with so many bytes. error: 0; -ENODATA:
	 * there is no such area now; -EAGAIN (the keeper died during it, or there is none);
	 * -ECANCELED (the daemon ends); prepare's, or the keeper's. */
	void (*done)(struct aux_taking *taking, int error, int fd, uint64_t size);
};

/* A party that waits until an event traces wherever it is to. The caller owns it and embeds it in a
 * larger struct. */
struct aux_wait {
	struct aux_wait *next;
	uint64_t id; /* of the event that owns the rings */

	/* Called exactly once. error: 0, or a positive errno value with a sentence. */
	void (*done)(struct aux_wait *wait, int error, const char *sentence);
};

/* An area that the keeper has. */
struct held_area {
	struct pp_keep_area is;
	bool listed;	      /* by the keeper that we are connected to */
	bool dead;	      /* its CPU was offline, of which the kernel keeps no account */
	uint64_t rests_until; /* it is not copied before: CLOCK_MONOTONIC, ns */
};

struct auxtrace {
	struct waiter waiter; /* first: our waiter is this auxtrace */

	/* The caller sets these; borrowed. */
	struct lifecycle *lifecycle;
	const struct pp_cpumask *online; /* always up to date */
	const char *registry;
	/* May be NULL. No area is wanted, and the keeper has none or does not exist. */
	void (*gone)(void *userdata);
	void *userdata;

	struct keeper keeper;
	struct held_area *held; /* what the keeper has, sorted as it sorts, once it is known */
	size_t n_held;
	bool known;
	struct pp_keep_area listed; /* the last one of its answer so far */
	bool left;		    /* nothing is wanted or held: the keeper is left alone */
	bool stepping;

	/* Reconnecting to a keeper that is unreachable. */
	sd_event_source *retry;
	bool waiting; /* for the retry */
	unsigned attempts;
	uint64_t backoff;

	/* The order, until the keeper has answered what came of it. Of the event: its id, and that
	 * of its rings. */
	uint64_t about, origin;
	bool ordering;
	uint64_t connection,
		ordered_on; /* number of the connection; and at the time of the order */
	struct pp_cpumask asked_for;
	struct pp_keep_cpu page[PP_KEEP_CPUS]; /* those of them with a descriptor */
	uint32_t n_page;
	struct pp_fds fds; /* received, to be passed to the keeper */

	sd_event_source *again; /* while an event is wanted: until all is looked at again */

	/* The keeper is to be told again which events from this origin on are paused; 0: none. */
	uint64_t restate;

	struct aux_wait *waits;
	struct aux_taking *first_taking, **last_taking;
	struct aux_taking *current; /* the request at the keeper */
	uint64_t asked;		    /* since when: CLOCK_MONOTONIC, ns */
	uint32_t last_uid;	    /* user of the last request */
	sd_event_source *rest;	    /* until an area can be copied again */
};

/* a is all zeroes except the fields that the caller sets. path: the keeper's socket; connects on
 * demand. 0; -errno. */
int auxtrace_init(struct auxtrace *a, sd_event *loop, const char *path);
/* Cancels waiting requests (-ECANCELED). The keeper keeps its areas. Accepts an empty struct. */
void auxtrace_done(struct auxtrace *a);

/* Call this when events or the link to the engine come or go, or an order has completed. */
void auxtrace_continue(struct auxtrace *a);

/* Retries what was refused: CPUs have come, or ten seconds have passed. A PMU that the kernel has stopped,
 * because it could not write its trace, traces again. */
void auxtrace_retry(struct auxtrace *a);

/* A CPU went offline. */
void auxtrace_went(struct auxtrace *a, unsigned cpu);

/* No area is wanted, and the keeper has not yet confirmed that it has none: see `gone`. */
bool auxtrace_is_leaving(const struct auxtrace *a);

/* Each calls done later, or from within. */
void auxtrace_wait(struct auxtrace *a, struct aux_wait *wait);
void auxtrace_take(struct auxtrace *a, struct aux_taking *taking);
