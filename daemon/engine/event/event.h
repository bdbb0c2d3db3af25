/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A persistent event's life: made of rings, recording programs and the registry's files, pinned,
 * changed, paused, found again. What the engine does for an order. Names are another's business
 * (names.h): here an event is its directory.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/*
 * Makes the event; when it returns 0 the event records and is in the registry. The rings'
 * pins and the registry's files are owned by `broker`. allowance: see crowd.h; NULL: no limits. On
 * failure nothing of it stays.
 */
int event_create(const struct pp_spec *spec, const struct pp_parsed *parsed,
		 const struct pp_allowance *allowance, uid_t broker, struct pp_event *ret,
		 struct failure *f);

/*
 * Changes what PP_CHANGE_* bits say: filter (spec's text, parsed event's nodes, for all sources; which
 * must not weigh more than allowance lets it; no change may be more work), data_size, max_rate.
 * Each record goes by the old or by the new. *ret: as enumerated; *ret_orphans: the old rings, if
 * somebody may have them, else id 0. On failure nothing is changed.
 */
int event_change(uint64_t id, uint32_t what, const struct pp_spec *spec,
		 const struct pp_parsed *parsed, const struct pp_allowance *allowance, uid_t broker,
		 struct pp_event *ret, struct pp_orphans *ret_orphans, struct failure *f);

/* Pauses it, or resumes it, if to resume it is no more work than allowance lets it be; *ret: as
 * enumerated. To be what it is already is no failure. */
int event_pause(uint64_t id, bool pause, const struct pp_allowance *allowance, uid_t broker,
		struct pp_event *ret, struct failure *f);

/*
 * CPUs have come (back): those that the event wants get rings, if they have none, and what counts
 * there is attached anew, if it has died. *ret: as enumerated. Nothing to do is no failure. On
 * failure no ring is added.
 */
int event_cpus(uint64_t id, const struct pp_cpumask *come, uid_t broker, struct pp_event *ret,
	       struct failure *f);

/* At start, for each event's directory: finishes what a dead engine left half-done. -errno. */
int event_recover_one(const char *path, uid_t broker);

/*
 * What is pinned in an event's directory. -ENOENT; -EBADMSG; -EPROTONOSUPPORT (of a newer
 * perfpersist), -ESTALE (of an older one); -errno.
 */
int event_read(const char *path, struct pp_event *ret);

/* Whether that error says what the event is, and not what is wrong with us. */
bool event_is_strange(int r);

/*
 * Logs that `name`, whose directory is `path`, cannot be read because of r, and is left alone. 0; or r,
 * if it is for want of memory or descriptors, when nothing may be said to be gone.
 */
int event_not_understood(const char *name, const char *path, int r);
