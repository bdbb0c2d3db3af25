/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Triggers: events whose records turn other events' tapes (daemon/trigger.h). Pins in the event's
 * directory: "trigger", its struct pp_trigger; "targets", the targets' tapes; "pairs", those that
 * have begun, if it knows any; "pending", what is fired and not told, and "fire0", …, the programs that tell
 * (sources/programs.h).
 */
#pragma once

#include <sys/types.h>

#include "daemon/engine/event/parts.h"
#include "daemon/trigger.h"

/* Makes what a trigger has beside an event, in p's draft, for its programs; messages in *f. */
int trigger_make(struct parts *p, const struct pp_trigger_spec *spec, struct failure *f);

/* What the trigger at `path` is. -ENOENT: no trigger; -errno. */
int trigger_read(const char *path, struct pp_trigger_spec *ret);

/* The trigger with this id turns the tapes of these events (at most PP_TARGETS_MAX), and of no
 * others; those that are not armed are left out. -errno, with a message in *f. */
int trigger_aim(uint64_t id, const uint64_t *targets, size_t n, struct failure *f);

/* The trigger's event is deleted, and its directory is at `path`. Its programs run until the reaper has
 * detached them, and turn nothing any more. */
void trigger_disown(const char *path);

/* Fires it by hand, within its limits, as one of its records does. overdue: once, for one of the pairs
 * that should have ended by now. *ret: the firing. -EAGAIN: its limits do not let it, or no pair is
 * overdue; -errno; with a message in *f. */
int trigger_fire(uint64_t id, bool overdue, struct pp_fired *ret, struct failure *f);

/* A trigger's pairs that have begun are none. No program of it runs. -errno with a message. */
int trigger_forget_pairs(const struct parts *p, struct failure *f);
