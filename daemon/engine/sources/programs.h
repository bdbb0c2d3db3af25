/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recording programs of an event, and the slots that make them run: PROG_ARRAYs, one for each
 * class of entries, with a slot for each source; see recorder.h. PROG_ARRAYs are pinned ("progs0",
 * "progs1", …), because the kernel empties one when its last descriptor and pin go; the programs in
 * the slots need no pins.
 *
 * A program of the creator's own (user-program.h) takes the only source's slot. Then there is a
 * recording program for each of its decisions, in the PROG_ARRAY through which it goes on.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/fire.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/sources.h"
#include "daemon/engine/sources/user-program.h"

struct program_array {
	const char *class; /* the recorder's; valid as long as the sources are */
	uint32_t n;	   /* slots */
	int fd;
	int tell; /* PROG_ARRAY with the program that tells of firings; -EBADF: the event is no trigger */
	int user, next; /* the creator's program, and its PROG_ARRAY; -EBADF: there is none */
};

struct program_slot {
	uint32_t array, index;
};

/* The sources' order, and the numbers of system calls, determine the slots. */
struct programs {
	struct program_array *arrays;
	size_t n_arrays;
	struct program_slot *slots; /* of each source */
	size_t n;
	int *loaded;	 /* each recording program that is not in its slot yet */
	size_t n_loaded; /* one of each source, or of each decision */
};

/* Makes the arrays of a new event, pinned in its draft; slots are empty. With a program of its
 * creator's, which stays the caller's, there is one source. */
int programs_create(const struct sources *s, const struct user_program *user,
		    struct pins_draft *draft, struct programs *ret, struct failure *f);

/* For a trigger's event: each record, also one without a place, goes on to the program that tells of firings.
 * Each array has one, pinned in the draft ("fire0", …). Before any program is loaded. */
int programs_make_tell(struct programs *p, const struct sources *s, const struct fire *fire,
		       struct pins_draft *draft, struct failure *f);

/* Opens those that are pinned in the event's directory. */
int programs_open(const struct sources *s, const char *path, struct programs *ret,
		  struct failure *f);
void programs_done(struct programs *p);

/* They are not to be: a map of the event's creator, who may keep it, lets go of those in it. */
void programs_forget(const struct programs *p);

/* The same for the event at `path`; it may have no such map. -errno. */
int programs_forget_at(const char *path);

/* Whether the pinned ones are as they would be made for these sources. */
bool programs_fit(const struct sources *s, const char *path);

/* The array of counters that others are about to replace. */
struct former {
	int fd;
	uint32_t n; /* slots */
	int idle;   /* a program that does nothing, for each of them */
};
#define FORMER_NONE                          \
	{                                    \
		.fd = -EBADF, .idle = -EBADF \
	}

/* Gives the counters (recorder.per_cpu; they are of one class) an empty array of their own. The slots of
 * the former one stay full. -ENOENT: there are no counters; -errno. */
int programs_renew(struct programs *p, const struct sources *s, struct former *ret);
void former_done(struct former *f);

/* Nothing is recorded through the former array from then on. -errno. */
int programs_idle_former(const struct former *f);

/* Empties the slots of the one that is pinned at `path`, if there is one. -errno. */
int programs_stop_former(const char *path);

/* Pins the arrays in another draft, too, and the creator's program. */
int programs_carry(const struct programs *p, struct pins_draft *draft);

/* Where the entry of source i finds its program. */
struct recorder_slot programs_slot(const struct programs *p, size_t i);

/* Loads the programs of all sources, and keeps them; messages in *f. */
int programs_load(struct programs *p, const struct sources *s, const struct recorder_target *target,
		  struct failure *f);

/* The same for sources whose programs know their rings (recorder.is_direct). */
int programs_load_direct(struct programs *p, const struct sources *s,
			 const struct recorder_target *target, struct failure *f);

/* Puts all loaded programs into their slots, one after the other: from then on each records. */
int programs_fill(struct programs *p);

/* Loads each and puts it in at once. After a failure some slots may be full. */
int programs_start(struct programs *p, const struct sources *s,
		   const struct recorder_target *target, struct failure *f);

/* ── of an armed event ── */

/*
 * The programs of its sides (daemon/trigger.h): PROG_ARRAYs like those of the slots ("sides0", …), with
 * PP_SIDES slots for each of theirs.
 */
struct sides {
	int *fd; /* as many as there are programs.arrays */
	size_t n;
};

/* Makes them for these programs, empty. -errno. */
int sides_create(const struct programs *p, struct sides *ret);
/* Opens those that are pinned in the event's directory. -errno. */
int sides_open(const struct programs *p, const char *path, struct sides *ret);
/* The name of the pin of array i. */
void sides_leaf(size_t i, char ret[32]);
void sides_done(struct sides *sides);

/* Loads all sources' programs for one side, which record to `target`, and puts them there; messages
 * in *f. The guard's slots are the sources'. */
int sides_fill(const struct sides *sides, const struct programs *p, const struct sources *s,
	       const struct recorder_target *target, const struct recorder_guard *guard,
	       struct failure *f);

/* Loads those of the side that the slots begin with, and keeps them for programs_fill(). */
int programs_load_guarded(struct programs *p, const struct sources *s,
			  const struct recorder_target *target, const struct sides *sides,
			  const struct recorder_guard *guard, struct failure *f);

/*
 * Puts programs that do nothing into all slots: nothing is recorded, and the recording programs are
 * gone. -errno: some slots may still have theirs.
 */
int programs_idle(struct programs *p, const struct sources *s);

/*
 * Empties all slots of the event at `path`, whose sources need not be known. It takes a grace
 * period (tens of milliseconds) for each slot: prefer programs_idle().
 */
int programs_stop(const char *path);
