/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry: all events by name and, once they have one, by id; all namespaces by name.
 * A model in memory, made from what the engine finds; nothing here touches the machine.
 */
#pragma once

#include "daemon/broker/state/event.h"
#include "daemon/broker/state/namespace.h"

struct registry {
	struct event **by_name; /* sorted by namespace, then name */
	size_t n_events;
	struct event **by_id; /* sorted; those that have an id */
	size_t n_settled;
	size_t room; /* of both arrays */

	struct namespace **namespaces; /* sorted */
	size_t n_namespaces, namespace_room;
};

/* The empty registry is all zeroes. Frees everything in it. */
void registry_done(struct registry *registry);

/* Makes it a namespace that stays when it has no events, with these rights, whatever it was.
 * 0; 1 (its group or mode was another: the files of its events have them still); -ENOMEM. */
int registry_configure(struct registry *registry, const char *name, uint32_t owner, uint32_t group,
		       uint32_t mode, enum namespace_live live);

/* From now on it exists only as long as it has events. */
void registry_unconfigure(struct registry *registry, struct namespace *ns);

struct namespace *registry_namespace(const struct registry *registry, const char *name);
struct event *registry_by_name(const struct registry *registry, const char *ns, const char *name);
struct event *registry_by_id(const struct registry *registry, uint64_t id);

/* Index into by_id of the first event whose id is above this one. */
size_t registry_after(const struct registry *registry, uint64_t id);

/*
 * Reserves the spec's name: an event that is creating, in its namespace, which is made with
 * the spec's owner, group and mode if it is not there. 0; -EEXIST; -ENOMEM.
 */
int registry_add(struct registry *registry, const struct pp_spec *spec, struct event **ret);

/* What was reserved is there: it gets its id, and runs, or is paused. 0; -EEXIST (the id is
 * taken). */
int registry_settle(struct registry *registry, struct event *e, const struct pp_event *truth);

/* Frees the event, and its namespace if that was its last one and it is not configured. */
void registry_remove(struct registry *registry, struct event *e);
