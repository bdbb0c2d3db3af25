/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts that an armed event has beside those of parts.h. Used by arm.c and change.c. */
#pragma once

#include "daemon/trigger.h"
#include "daemon/engine/event/parts.h"

struct armed {
	struct sides sides;
	int tape;	      /* struct pp_tape */
	int frozen;	      /* counts, by CPU, what happened while no side recorded; see arm.h */
	int firings, sending; /* the instance's; -EBADF: the sides have no windows */
	bool swap;	      /* there is a second set of rings */
};

#define ARMED_NONE                                                                      \
	{                                                                               \
		.tape = -EBADF, .frozen = -EBADF, .firings = -EBADF, .sending = -EBADF, \
	}

void armed_done(struct armed *a);

/* Makes the maps; `p` is restored. swap: see event_arm(). Messages in *f, as below. */
int armed_create(struct parts *p, bool swap, struct armed *ret, struct failure *f);

/* Opens those of the event at `path`, and reads the tape. -ENOENT: it is not armed. */
int armed_open(const char *path, struct parts *p, struct armed *ret, struct pp_tape *ret_tape,
	       struct failure *f);

/* Makes a set of rings like p's, for the change after p's present set. */
int armed_make_spare(struct parts *p, struct rings *ret, struct failure *f);

/* Loads the programs of a side, which record into `rings`, and puts them there; likewise those of its
 * closing side, if the tape has windows. */
int armed_fill(const struct armed *a, struct parts *p, const struct rings *rings, uint32_t side,
	       struct failure *f);

/* Loads the programs that only count: a trigger can stop the event, whose tape has not that yet. */
int armed_allow_stop(const struct armed *a, struct parts *p, struct failure *f);

/* The tape, which has none, gets windows: `rings` are those of the side that it is on, `spare` those of
 * the other one. */
int armed_open_windows(struct armed *a, struct parts *p, const struct rings *spare, uint32_t side,
		       struct failure *f);

/* Loads the programs of a side and keeps them for programs_fill(). */
int armed_load(const struct armed *a, struct parts *p, uint32_t side, struct failure *f);

/* Pins everything but the tape in the directory at `path`; spare: may have no rings. -errno. */
int armed_pin(const struct armed *a, const struct rings *spare, const char *path);
int armed_pin_tape(const struct armed *a, const char *path);

/* Pins all of it in p's draft. */
int armed_carry(const struct armed *a, const struct rings *spare, struct parts *p,
		struct failure *f);

/* For a tape that no trigger turns now. */
int armed_set(const struct armed *a, uint32_t side, uint32_t next, struct failure *f);
/* From now on no trigger turns it, unless one was faster. 1: done; 0: not. */
int armed_hold(const struct armed *a, struct failure *f);
/* Waits until the trigger that has turned it has written down what it is: an interrupt may hold it
 * up. After a second *ret has what there is. */
int armed_read_by(const struct armed *a, struct pp_fired *ret, struct failure *f);
