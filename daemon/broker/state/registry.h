/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry: all events by name and, once they have one, by id; all namespaces by name. A model
 * in memory, built from the engine's enumeration; this file never touches the machine.
 */
#pragma once

#include "daemon/broker/state/event.h"
#include "daemon/broker/state/namespace.h"

struct registry {
	struct event **by_name; /* sorted by namespace, then name */
	size_t n_events;
	struct event **by_id; /* sorted; the events with an id */
	size_t n_settled;
	size_t room; /* of both arrays */

	struct namespace **namespaces; /* sorted */
	size_t n_namespaces, namespace_room;
};

/* The empty registry is all zeroes. Frees all its contents. */
void registry_done(struct registry *registry);

/* Makes it a permanent namespace with these rights, whether it exists or not. 0; 1 (group or mode
 * has changed: its events' files still have the old one); -ENOMEM. */
int registry_configure(struct registry *registry, const char *name, uint32_t owner, uint32_t group,
		       uint32_t mode, enum namespace_live live);

/* From now on the namespace exists only while it has events. */
void registry_unconfigure(struct registry *registry, struct namespace *ns);

struct namespace *registry_namespace(const struct registry *registry, const char *name);
struct event *registry_by_name(const struct registry *registry, const char *ns, const char *name);
struct event *registry_by_id(const struct registry *registry, uint64_t id);

/* Index into by_id of the first event whose id is above this one. */
size_t registry_after(const struct registry *registry, uint64_t id);

/*
 * Reserves the spec's name: adds an event in state CREATING, and creates its namespace with the
 * spec's owner, group and mode if necessary. 0; -EEXIST; -ENOMEM.
 */
int registry_add(struct registry *registry, const struct pp_spec *spec, struct event **ret);

/* The reserved event exists now: sets its id, and makes it running or paused. 0; -EEXIST (the id is
 * taken). */
int registry_settle(struct registry *registry, struct event *e, const struct pp_event *truth);

/* Frees the event, and its namespace if that is empty then and not configured. */
void registry_remove(struct registry *registry, struct event *e);
