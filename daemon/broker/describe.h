/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An event as the protocol shows it. */
#ifndef PP_BROKER_DESCRIBE_H
#define PP_BROKER_DESCRIBE_H

#include "daemon/broker/event.h"
#include "daemon/broker/tree.h"

/* What it has recorded by now; where that cannot be read: nothing, and missed unknown. */
void event_count(const char *registry, const struct event *e, struct tree_stat *ret);

void event_describe(const struct event *e, const struct tree_stat *stat, struct pp_msg_event *ret);

#endif
