/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arms events: prepares what a trigger turns to, in the kernel and at once. An armed event has a
 * tape (daemon/trigger.h), a second set of rings or none, and programs for each side.
 *
 * Pins in the event's directory: "sides0", …; "spare", the ARRAY_OF_MAPS of the second set; "frozen",
 * which counts, for each CPU, what happened while no side recorded and "ringless" is not there to do
 * so; and last, when all programs are in their slots, "tape". An engine that dies before that leaves
 * an event that is not armed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/trigger.h"
#include "daemon/engine/event/rings.h"
#include "daemon/engine/failure.h"

enum arm_state {
	ARM_NONE,    /* not armed */
	ARM_READY,   /* a trigger can turn it */
	ARM_TURNED,  /* one has turned it, and event_turn() is due */
	ARM_FROZEN,  /* likewise, and it has no second set: event_thaw() is due after that */
	ARM_STOPPED, /* one has stopped it, and event_turn() is due, which pauses it */
	ARM_CLOSING, /* one has opened its window, and event_close() is due */
};

/* An enum arm_state; -errno. */
int event_arm_state(const char *path);

/* What triggers can do beside turning it: PP_NOW_WINDOWS, PP_NOW_STOPS. */
uint32_t event_arm_facts(const char *path);

/* Ends its window, if that is over, or early: the tape is turned then. 1: none is open; 0: it is not
 * over; -ENOENT: the event is not armed; -errno. */
int event_close(const char *path, bool early);

/*
 * Arms the event pinned at `path`, which records all the time. what: PP_ARM_SWAP: a second set of rings,
 * as large as the first, records from the trigger on; else nothing does. PP_ARM_WINDOWS: a trigger can let
 * it go on for a while; PP_ARM_STOPS: one can stop it, as always without a second set. An armed event is
 * left alone, but for what it lacks of these two. -EBUSY: it was turned. -errno, with a message in *f: it
 * may be armed without these two, else nothing is changed.
 */
int event_arm(const char *path, uid_t broker, uint32_t what, struct failure *f);

/*
 * Completes the turn of an armed event, which a trigger has begun. Waits until the last program that
 * found the old rings has ended: nothing changes in them any more.
 *
 * With a second set that becomes the event's, as after a change of its rings: readers of the old one
 * see that it is retired, and it is a tape now (registry/tapes.h), whose memory is charged as
 * orphans, *ret. what, PP_TURN_AGAIN: the event is armed again, with another second set; else it is not
 * armed.
 * Without a second set the old rings stay the event's, nothing records until event_thaw(), and *ret
 * is empty.
 *
 * If the trigger has stopped it, it is paused and not armed any more, *ret is empty, and
 * event_stopped_by() tells what did that until it is resumed. PP_TURN_STOPPED: only such an event is
 * touched.
 *
 * 1: it was turned; 2: it was stopped; 0: it was neither, or its window is open. -errno, with a message in
 * *f: the event is as before, and not armed while its tape is turned; or half changed (event_finish()).
 */
int event_turn(const char *path, uid_t broker, uint32_t what, struct pp_orphans *ret,
	       struct failure *f);

/* What has turned it. -ENOENT: it is not armed; -errno. */
int event_turned_by(const char *path, struct pp_fired *ret);

/* What has paused it. -ENOENT: no trigger has; -errno. */
int event_stopped_by(const char *path, struct pp_fired *ret);

/* The event without a second set records again, and is armed. 1; 0: it was not turned; -errno. */
int event_thaw(const char *path, uid_t broker, struct failure *f);

/* Of an event that is frozen, when the last record is there: marks it, so that its removal makes it a tape. */
int event_keep_frozen(const char *path, uid_t broker, struct failure *f);

/* Takes all of that away; the event goes on recording into the rings that meta lists. Not being
 * armed is no failure. -EBUSY: it was turned; -errno, with a message in *f. */
int event_disarm(const char *path, uid_t broker, struct failure *f);

/* The same for an event whose slots have other programs already. */
void event_forget_arming(const char *path);
