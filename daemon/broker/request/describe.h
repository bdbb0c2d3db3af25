/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events and charges in the protocol's form. */
#pragma once

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/lifecycle/lifecycle.h"

/* Reads the event's counts. If they cannot be read: zeroes, and missed unknown. totals: the caller's, for
 * all counts of this registry (tree_count()). */
void event_count(const char *registry, const struct event *e, int *totals, struct tree_stat *ret);

/* stat NULL: without counts. Leaves out the fields that depend on the peer (PP_EVENT_COPIES; see
 * request_describe) and those about its CPUs. */
void event_describe(const struct event *e, const struct tree_stat *stat, struct pp_msg_event *ret);

/* Fills in the rest: CPUs with rings that are offline, and CPUs with missing rings. */
void event_describe_cpus(const struct lifecycle *l, const struct event *e,
			 const struct pp_cpumask *online, struct pp_msg_event *ret);
