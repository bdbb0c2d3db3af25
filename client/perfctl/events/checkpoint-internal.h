/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by checkpoint.c, which decides when an event is written, and checkpoint-targets.c, which decides
 * what has a file. */
#pragma once

#include "client/perfctl/events/budget.h"
#include "client/perfctl/events/checkpoint.h"
#include "proto/clock.h"

/* An event that asks for checkpoints. */
struct target {
	struct perfpersist_info info;
	struct perfpersist_event *event;     /* NULL: there are no checkpoints of it now */
	struct perfpersist_checkpoint *file; /* NULL likewise */
	uint64_t size;			     /* of the file; also of one that is kept */
	uint64_t due;			     /* CLOCK_MONOTONIC, ns */
	bool is_seen;			     /* in the present list */
	bool is_stale;			     /* is to be opened, or opened again, when it is due */
	bool is_kept; /* not opened yet, or in vain: its file stays as it is */
	bool has_complained;
	bool has_skipped;
};

struct checkpointing {
	struct call *call;
	const struct checkpoint_options *options;
	struct perfpersist_checkpoints *files;
	struct perfpersist *p; /* NULL: the daemon is away */
	struct target *all;
	size_t n;
	bool came;	 /* a notice: the list may be another */
	bool is_told;	 /* that the daemon is away */
	uint64_t looked; /* when it was read, CLOCK_MONOTONIC, ns; 0: not yet */
	struct budget budget;
};

static inline uint64_t checkpoint_now(void)
{
	return pp_clock_ns(CLOCK_MONOTONIC);
}

static inline bool target_is_root(const struct target *t)
{
	return !t->info.creator;
}

/* ── checkpoint-targets.c ── */

void target_close(struct target *t);

/* Closes it, but its file stays as it is. */
void target_keep(struct target *t);

/* Complains, once until it is well again. */
void target_say(struct target *t, const char *why);

/* Opens its rings, and its file, if there is room. It is due as before: an event that changes often has no
 * more checkpoints. */
void target_open(struct checkpointing *c, struct target *t);

/* Reads which events ask for checkpoints. -errno of the library. */
int targets_look(struct checkpointing *c);
