/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A persistent event's life: made of rings, a recorder and the registry's files, pinned,
 * found again, deleted. What the engine does for an order.
 */
#ifndef PP_ENGINE_EVENT_H
#define PP_ENGINE_EVENT_H

#include <sys/types.h>

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/*
 * Makes the event; when it returns 0 the event records and is in the registry. The rings'
 * pins and the registry's files are owned by `broker`. On failure nothing of it stays.
 */
int event_create(const struct pp_spec *spec, uid_t broker, struct pp_event *ret, struct failure *f);

/* Deletes it. *ret is what it was. -ENOENT. */
int event_delete(uint64_t id, struct pp_event *ret, struct failure *f);

/*
 * Before the pins of a deleted event go: who still has its `stat` open must not look for a
 * program that is gone.
 */
void event_bury(const char *path);

/* Runs fn for each event there is; those that cannot be understood are logged and left alone. */
int event_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata);

#endif
