/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many of our programs run on each tracepoint or probed place, and whose they are. Every passer
 * pays for each one, even if its filter lets nothing through (a filter can cost as much as several:
 * filter-weight.h), and a tracepoint has room for 64 programs of perf's kind, including other
 * tools'. The broker sets the limits (struct pp_allowance), since it knows the users; only the
 * engine knows what a glob matches.
 */
#pragma once

#include "daemon/engine/sources/sources.h"

/* Each returns 0, or -EDQUOT (or another -errno) with a message. allowance NULL: no limits. */

/* May an event have n sources that come to this work, including all nodes of their filters? */
int crowd_check_size(const struct pp_spec *spec, size_t n, uint64_t work,
		     const struct pp_allowance *allowance, struct failure *f);

/* Is there room for these on their tracepoints, by weight? They replace the event's existing ones
 * (id; 0: none). */
int crowd_check_places(const struct pp_event *event, const struct sources *sources,
		       const struct pp_allowance *allowance, struct failure *f);

/* May this user inherit the event, by the number of that user's programs? */
bool crowd_may_inherit(const struct pp_event *event, uint32_t creator,
		       const struct pp_allowance *allowance);

/* May programs be loaded that come to this work? */
int crowd_check_work(uint64_t work, const struct pp_allowance *allowance, struct failure *f);

/* An event was made, or deleted. Counts what its meta says. */
void crowd_add(const struct pp_event *event);
void crowd_remove(uint64_t id);

/* Owners or filters of events have changed: the next check counts again. */
void crowd_recount(void);
