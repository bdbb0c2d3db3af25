/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An event, and what is charged, as the protocol shows it. */
#pragma once

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/lifecycle/lifecycle.h"

/* What it has recorded by now; where that cannot be read: nothing, and missed unknown. totals: of
 * tree_totals_open(), for who counts many; or negative. */
void event_count(const char *registry, const struct event *e, int totals, struct tree_stat *ret);

/* stat NULL: without counts. What depends on who asks (PP_EVENT_COPIES) is not in it (see
 * request_describe), nor what is with its CPUs. */
void event_describe(const struct event *e, const struct tree_stat *stat, struct pp_msg_event *ret);

/* The rest: of its rings' CPUs those that are away, and those that are lacking. */
void event_describe_cpus(const struct lifecycle *l, const struct event *e,
			 const struct pp_cpumask *online, struct pp_msg_event *ret);
