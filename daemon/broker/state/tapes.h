/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tapes: what events had recorded when triggers fired, until it is saved. A tape is read like an
 * event: it has the event's facts as they were then, an id of its own, and no programs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/broker/state/event.h"
#include "daemon/broker/state/namespace.h"

struct tape {
	/* truth.id: the tape's, or, without a second set of rings, the event's; its ns: `ns` */
	struct event event;
	struct namespace ns; /* of the event, as it was then, if there is none of that name any more */
	uint64_t of;	     /* the event's id */
	struct pp_fired by;
	bool ready;    /* all targets of that firing have one: it can be saved */
	uint64_t seen; /* the last reconciliation that found it */
};

struct tapes {
	struct tape **all; /* by id */
	size_t n, room;
};

/* The empty list is all zeroes. */
void tapes_done(struct tapes *t);

/* Adds or updates the tape with this id. 0; -ENOMEM. */
int tapes_add(struct tapes *t, uint64_t id, const struct pp_event *event, const struct pp_fired *by,
	      uint64_t seen);

/* NULL: there is none. */
struct tape *tapes_find(const struct tapes *t, uint64_t id);

/* A tape of the event with this id; or NULL. */
struct tape *tapes_of(const struct tapes *t, uint64_t event_id);

/* Index of the first tape whose id is above this one. */
size_t tapes_after(const struct tapes *t, uint64_t id);

void tapes_remove(struct tapes *t, uint64_t id);

/* Removes those that this reconciliation has not found. */
void tapes_sweep(struct tapes *t, uint64_t seen);
