/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of an event while the engine works on it: rings, catalog, sources, programs, meta, and
 * the draft in which they are pinned. They are new, or opened from an event's directory. create.c
 * and change.c decide what is done with them, and in which order.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/event/rings.h"
#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/programs.h"
#include "daemon/engine/sources/sources.h"
#include "daemon/engine/sources/user-program.h"

struct parts {
	uid_t broker;
	struct pp_event event;
	char name[PINS_PATH_SIZE]; /* "NAMESPACE/EVENT" of an opened one: for messages */
	struct pp_parsed *parsed;  /* as meta has it */
	struct sources sources;
	struct rings rings;
	int catalog;  /* -EBADF: it has none */
	int ringless; /* events that found no ring, by CPU; -EBADF: only listed CPUs are recorded */
	int earlier;  /* the counts of replaced rings (earlier.h); -EBADF: none were replaced */
	int trigger;  /* struct pp_trigger; -EBADF, also the next: the event is no trigger */
	int targets;  /* ARRAY_OF_MAPS of its targets' tapes (trigger.h) */
	int pairs;    /* the pairs that have begun (daemon/trigger.h); -EBADF: it knows none */
	int pending;  /* what each CPU has fired and not told (recorders/fire.h) */
	struct recorder_condition condition; /* as of `trigger`, and */
	struct recorder_fire fire;	     /* with these maps: once parts_target() was called */
	struct user_program user;	     /* of a new event; of others `programs` has it */
	/* bytes of its maps, of the perf events that were adopted, and of those of a bound event */
	uint64_t user_memory;
	struct binding binding; /* of a bound event; sources point to it */
	struct programs programs;
	int meta, wakeups, sending;
	struct pins_draft draft;
};

#define PARTS_NONE                                                                                 \
	{                                                                                          \
		.rings.outer = -EBADF, .catalog = -EBADF, .ringless = -EBADF, .meta = -EBADF,      \
		.earlier = -EBADF, .trigger = -EBADF, .targets = -EBADF, .pairs = -EBADF,          \
		.pending = -EBADF, .wakeups = -EBADF, .sending = -EBADF, .user = USER_PROGRAM_NONE \
	}

/* Releases everything; abandons a draft that is not committed. */
void parts_done(struct parts *p);

/* ── new ones; messages in *f ───────────────────────────────────────────────────────────── */

/* Derives from the sources: sizes, sample type, recorder. */
int parts_plan(struct parts *p, struct failure *f);

int parts_make_rings(struct parts *p, struct failure *f);

/* Adds rings for these CPUs, whose slots stay empty (rings_add()). */
int parts_add_rings(struct parts *p, const struct pp_cpumask *cpus, struct failure *f);

/* Only for several sources. */
int parts_make_catalog(struct parts *p, struct failure *f);

/* Pins rings and catalog in the draft. */
int parts_pin_rings(struct parts *p, struct failure *f);

/* Makes and pins meta, info and stat; links must be pinned in the draft already. */
int parts_make_files(struct parts *p, bool pending, struct failure *f);

/* ── those of an existing event ─────────────────────────────────────────────────────────── */

/* Opens event, parsed event, rings, catalog, meta. */
int parts_open(const char *path, uid_t broker, struct parts *ret, bool *ret_pending,
	       struct failure *f);

/* Writes the event, and the maps that it has now, into meta. */
int parts_write_down(struct parts *p, bool pending, struct failure *f);

/* Then, once spec and parsed event are changed as needed: restores sources and programs. */
int parts_restore(struct parts *p, const char *path, struct failure *f);

/* An interrupted change of counters: those before stop, and go. -errno. */
int parts_drop_former(const char *path);

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

/* Tells the sources in what they count. */
void parts_bind(struct parts *p);

/* Bytes of all that the event is charged for. */
uint64_t parts_memory(const struct parts *p);

/* Where the programs write records; it points into p. */
int parts_target(struct parts *p, struct recorder_target *ret, struct failure *f);
