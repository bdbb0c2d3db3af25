/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of an event, while the engine has its hands on it: rings, catalog, sources, programs,
 * what is written down of it, and the draft in which they are pinned. Made new, or opened from an
 * event's directory. What is done with them, and in which order, is for create.c and change.c.
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/event/rings.h"
#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/programs.h"
#include "daemon/engine/sources/sources.h"

struct parts {
	uid_t broker;
	struct pp_event event;
	char name[PINS_PATH_SIZE]; /* "NAMESPACE/EVENT" of one that was opened: for messages */
	struct pp_parsed *parsed;  /* as it is written down */
	struct sources sources;
	struct rings rings;
	int catalog;  /* -EBADF: it has none */
	int ringless; /* what found no ring, of each CPU; -EBADF: only listed CPUs are recorded */
	int earlier;  /* what replaced rings had counted (earlier.h); -EBADF: none were replaced */
	struct programs programs;
	int meta, wakeups;
	struct pins_draft draft;
};

#define PARTS_NONE                                                                            \
	{                                                                                     \
		.rings.outer = -EBADF, .catalog = -EBADF, .ringless = -EBADF, .meta = -EBADF, \
		.earlier = -EBADF, .wakeups = -EBADF                                          \
	}

/* Releases all of it; a draft that was not committed is abandoned. */
void parts_done(struct parts *p);

/* ── new ones; sentences in *f ──────────────────────────────────────────────────────────── */

/* What of the event follows from its sources: sizes, sample type, recorder. */
int parts_plan(struct parts *p, struct failure *f);

int parts_make_rings(struct parts *p, struct failure *f);

/* More of them, for these CPUs, whose slots stay empty (rings_add()). */
int parts_add_rings(struct parts *p, const struct pp_cpumask *cpus, struct failure *f);

/* For several sources; else nothing. */
int parts_make_catalog(struct parts *p, struct failure *f);

/* Pins rings and catalog in the draft. */
int parts_pin_rings(struct parts *p, struct failure *f);

/* Makes and pins meta, info and stat; links must be pinned in the draft. */
int parts_make_files(struct parts *p, bool pending, struct failure *f);

/* ── those of an event that is there ────────────────────────────────────────────────────── */

/* Event, parsed event, rings, catalog, meta. */
int parts_open(const char *path, uid_t broker, struct parts *ret, bool *ret_pending,
	       struct failure *f);

/* Writes the event down, and which maps it has by now. */
int parts_write_down(struct parts *p, bool pending, struct failure *f);

/* Then, with what was changed of spec and parsed event: sources and programs. */
int parts_restore(struct parts *p, const char *path, struct failure *f);

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

/* Where the programs' records go; it points into p. */
int parts_target(struct parts *p, struct recorder_target *ret, struct failure *f);
