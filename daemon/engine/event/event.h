/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A persistent event's life: rings, recording programs and the registry's files are made, pinned,
 * changed, paused and found again. Carries out the engine's orders. Knows no names (names.h): here
 * an event is its directory.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/*
 * Makes the event; when it returns 0 the event records and is in the registry. `broker` owns the
 * rings' pins and the registry's files. trigger: with PP_EVENT_TRIGGER, what it is as one;
 * program: with PP_EVENT_PROGRAM, the id of the creator's. target: with PP_EVENT_BOUND, in what it
 * counts: a cgroup gets its path and id; else it may be NULL.
 * allowance: see crowd.h; NULL: no limits. On failure nothing of it stays.
 */
int event_create(const struct pp_spec *spec, const struct pp_parsed *parsed,
		 const struct pp_trigger_spec *trigger, uint32_t program,
		 struct pp_msg_target *target, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct failure *f);

/*
 * Changes what the PP_CHANGE_* bits say: the filter of all sources (spec's text, the parsed event's
 * nodes), data_size, max_rate, the flags' checkpoint, the period of those that sample (with samples and
 * the flags' FREQ). The filter must not weigh more than allowance permits; but for a shorter period,
 * whose samples the broker has charged, no change may be more work. Each record goes by the old program
 * or by the new one. *ret_orphans: the old rings, if somebody may have them, else id 0. On failure
 * nothing is changed.
 */
int event_change(uint64_t id, uint32_t what, const struct pp_spec *spec,
		 const struct pp_parsed *parsed, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_orphans *ret_orphans, struct failure *f);

/* Pauses or resumes the event; resuming must not be more work than allowance permits. It is no
 * failure if the event already is in that state. */
int event_pause(uint64_t id, bool pause, const struct pp_allowance *allowance, uid_t broker,
		struct failure *f);

struct parts;

/* Pauses the event of these parts, which are restored, at `path`. -errno, with a message in *f; what is
 * half done is finished as any such step. */
int event_stop(struct parts *p, const char *path, struct failure *f);

/*
 * CPUs have come online: those that the event wants get rings, if they have none, and counters that
 * died are attached anew. Nothing to do is no failure. If a ring or its counter cannot be had, no ring is
 * added; if a dead counter cannot be attached, the others are. The one does not keep the other.
 */
int event_cpus(uint64_t id, const struct pp_cpumask *come, uid_t broker, struct failure *f);

/* Whether event_cpus() would change something; true, too, if that cannot be found out. */
bool event_lacks_cpus(uint64_t id, const struct pp_cpumask *come);

/* Finishes the half-done step of a dead engine, if there is one. An event whose step cannot be
 * finished is paused; a later call, or event_pause(), may finish it. -errno, with a message in *f. */
int event_finish(const char *path, uid_t broker, struct failure *f);

/* The same at start, for each event's directory. Logs what cannot be finished. -errno: nor can the
 * event be read, or paused, so its slots may hold the programs of retired rings. */
int event_recover_one(const char *path, uid_t broker);

/*
 * The event that is pinned in a directory. -ENOENT; -EBADMSG; -EPROTONOSUPPORT (of a newer
 * perfpersist), -ESTALE (of an older one); -errno.
 */
int event_read(const char *path, struct pp_event *ret);

/* The target of the event there; all 0: it has none. Errors as of event_read(). */
int event_target(const char *path, struct pp_msg_target *ret);

/*
 * Logs that `name`, whose directory is `path`, cannot be read because of r, and is left alone.
 * Returns 0; or r, if the engine failed: then no event may be reported as gone.
 */
int event_not_understood(const char *name, const char *path, int r);
