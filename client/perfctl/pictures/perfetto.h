/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a trace that ui.perfetto.dev opens: tracepoints that it knows as ftrace events, samples
 * with their call chains, and all other tracepoints as instants on their threads, with their fields
 * as arguments.
 */
#pragma once

#include "client/perfctl/pictures/aggregate.h"

struct perfetto;

/* fd: the caller's file, written from its present position on. Trace and aggregate must
 * outlive it. */
int perfetto_new(int fd, struct trace *t, const struct aggregate *a, struct perfetto **ret);

/* Adds a record, with the result of aggregate_add(). -ENOMEM, or the error of write(2). */
int perfetto_add(struct perfetto *p, const struct trace_record *record,
		 const struct flame_node *leaf);
int perfetto_finish(struct perfetto *p);

/* Records whose fields could not be read. */
uint64_t perfetto_damaged(const struct perfetto *p);
void perfetto_free(struct perfetto *p);

static inline void perfetto_freep(struct perfetto **p)
{
	perfetto_free(*p);
}
