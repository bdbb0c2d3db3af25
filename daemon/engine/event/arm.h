/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arms events: prepares what a trigger turns to, in the kernel and at once. An armed event has a
 * tape (bpf/tape.h), a second set of rings or none, and programs for each side.
 *
 * Pins in the event's directory: "sides0", …; "spare", the ARRAY_OF_MAPS of the second set; "frozen",
 * which counts, for each CPU, what happened while no side recorded; and last "tape". An engine that
 * dies before that leaves an event that is not armed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/engine/bpf/tape.h"
#include "daemon/engine/event/rings.h"
#include "daemon/engine/failure.h"

/*
 * Arms the event pinned at `path`, which records all the time. swap: a second set of rings, as large
 * as the first, records from the trigger on; else nothing does. -EALREADY: it is armed. -errno, with
 * a message in *f, and nothing is changed.
 */
int event_arm(const char *path, uid_t broker, bool swap, struct failure *f);

/*
 * Of an armed event, whether a trigger has turned its tape: completes the turn, and arms the event
 * again. Waits until the last program that found the old rings has ended, then calls `saved` with
 * them: nothing changes in them any more. It may keep descriptors of them.
 *
 * With a second set that becomes the event's, as after a change of its rings: readers of the old one
 * see that it is retired, and their memory is charged as orphans (*ret; id 0: nobody has them). Else
 * the event records into its rings again.
 *
 * 1: it was turned; 0: it was not. -errno, with a message in *f: the event is as before, and not
 * armed while its tape is turned; or half changed (event_finish()).
 */
int event_turn(const char *path, uid_t broker,
	       void (*saved)(const struct rings *rings, const struct pp_tape *tape, void *userdata),
	       void *userdata, struct pp_orphans *ret, struct failure *f);

/* Takes all of that away; the event goes on recording into the rings that meta lists. Not being
 * armed is no failure. -errno, with a message in *f. */
int event_disarm(const char *path, uid_t broker, struct failure *f);
