/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by change.c and turn.c only: the steps of a change. */
#pragma once

#include "daemon/engine/event/event.h"
#include "daemon/engine/event/parts.h"

struct change {
	char path[PINS_PATH_SIZE];
	uint32_t what;
	const struct pp_allowance *allowance; /* NULL: no limits */
	struct parts new;		      /* with the old rings, if those stay */
	struct rings old;		      /* the replaced rings; else none */
	int before;	      /* the counts of the rings before those; -EBADF: there were none */
	struct former former; /* of the replaced counters; else none */
	struct failure *f;
};

#define CHANGE_NONE                                                                             \
	{                                                                                       \
		.new = PARTS_NONE, .old.outer = -EBADF, .before = -EBADF, .former = FORMER_NONE \
	}

void change_done(struct change *c);

/* Each returns 0, or -errno with a message. In this order: */

/* Loads the programs of the new parts. */
int change_load(struct change *c);
int change_make_draft(struct change *c);

/* The draft takes the event's place; *ret_orphans: the number of what is replaced. */
int change_exchange(struct change *c, uint64_t *ret_orphans);

/* There is no way back from here: the engine's next start finishes a failed step. */
int change_flip(struct change *c);

/* Retires the old rings; a reader that sees "retired" and then reads the rest has all of it. */
void change_let_go(struct change *c, uint64_t orphans, struct pp_orphans *ret);
