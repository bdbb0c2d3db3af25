/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many programs of ours run on each tracepoint or place of a probe, and whose they are. Each
 * one is paid for by whoever passes there, also where its filter lets nothing through (which may
 * itself cost as much as several: filter-weight.h), and of perf's kind a tracepoint has room for
 * 64, other tools' included. The broker says how many there may be (struct pp_allowance), since it
 * knows who may have what; only here it is known what a glob stands for.
 */
#pragma once

#include "daemon/engine/sources/sources.h"

/* Each returns 0, or -EDQUOT (or another -errno) with a sentence. allowance NULL: no limits. */

/* May an event have n sources, which with all nodes of their filters come to this work? */
int crowd_check_size(const struct pp_spec *spec, size_t n, uint64_t work,
		     const struct pp_allowance *allowance, struct failure *f);

/* Is there room for these on their tracepoints, by their weight? What the event has there already
 * (id; 0: nothing) they take the place of. */
int crowd_check_places(const struct pp_event *event, const struct sources *sources,
		       const struct pp_allowance *allowance, struct failure *f);

/* Is there room for it among this user's programs, if it becomes that user's? */
bool crowd_may_inherit(const struct pp_event *event, uint32_t creator,
		       const struct pp_allowance *allowance);

/* May programs be loaded, which comes to this work? */
int crowd_check_work(uint64_t work, const struct pp_allowance *allowance, struct failure *f);

/* An event was made, or deleted. What is counted is what is written down of it. */
void crowd_add(const struct pp_event *event);
void crowd_remove(uint64_t id);

/* Events have changed hands, or filters: they are counted anew when it matters. */
void crowd_recount(void);
