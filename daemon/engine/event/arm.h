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

#include "daemon/engine/failure.h"

/*
 * Arms the event pinned at `path`, which records all the time. swap: a second set of rings, as large
 * as the first, records from the trigger on; else nothing does. -EALREADY: it is armed. -errno, with
 * a message in *f, and nothing is changed.
 */
int event_arm(const char *path, uid_t broker, bool swap, struct failure *f);

/* Takes all of that away; the event goes on recording into the rings that meta lists. Not being
 * armed is no failure. -errno, with a message in *f. */
int event_disarm(const char *path, uid_t broker, struct failure *f);
