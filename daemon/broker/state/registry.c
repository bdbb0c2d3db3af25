// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sorted arrays of pointers: a few thousand events, looked up far more often than changed,
 * and listed in order. Must not know orders, peers or files.
 */
#include "daemon/broker/state/registry.h"

#include <assert.h>
#include <string.h>

#include "proto/macro.h"

/* ── sorted arrays ──────────────────────────────────────────────────────────────────────── */

static int compare_names(const struct event *e, const char *ns, const char *name)
{
	int c = strcmp(e->truth.spec.ns, ns);

	return c ? c : strcmp(e->truth.spec.name, name);
}

/* Index of the first event that is not before ns/name. */
static size_t place_of_name(const struct registry *registry, const char *ns, const char *name)
{
	size_t low = 0, high = registry->n_events;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_names(registry->by_name[middle], ns, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t registry_after(const struct registry *registry, uint64_t id)
{
	size_t low = 0, high = registry->n_settled;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (registry->by_id[middle]->truth.id <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t place_of_namespace(const struct registry *registry, const char *name)
{
	size_t low = 0, high = registry->n_namespaces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(registry->namespaces[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Open or close a gap at index i of an array that holds n pointers. */
#define GAP_OPEN(array, i, n) \
	memmove(&(array)[(i) + 1], &(array)[i], ((n) - (i)) * sizeof(*(array)))
#define GAP_CLOSE(array, i, n) \
	memmove(&(array)[i], &(array)[(i) + 1], ((n) - (i)-1) * sizeof(*(array)))

/* Reserves room in both arrays, so that settling cannot fail later. */
static int make_room(struct registry *registry)
{
	size_t room = registry->room ? registry->room * 2 : 64;
	struct event **p;

	if (registry->n_events < registry->room)
		return 0;
	p = reallocarray(registry->by_name, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	registry->by_name = p;
	p = reallocarray(registry->by_id, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	registry->by_id = p;
	registry->room = room;
	return 0;
}

/* ── namespaces ─────────────────────────────────────────────────────────────────────────── */

struct namespace *registry_namespace(const struct registry *registry, const char *name)
{
	size_t i = place_of_namespace(registry, name);

	if (i == registry->n_namespaces || strcmp(registry->namespaces[i]->name, name) != 0)
		return NULL;
	return registry->namespaces[i];
}

static int add_namespace(struct registry *registry, const char *name, uint32_t owner,
			 uint32_t group, uint32_t mode, struct namespace **ret)
{
	size_t i = place_of_namespace(registry, name);
	struct namespace *ns;

	if (registry->n_namespaces == registry->namespace_room) {
		size_t room = registry->namespace_room ? registry->namespace_room * 2 : 16;
		struct namespace **p = reallocarray(registry->namespaces, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		registry->namespaces = p;
		registry->namespace_room = room;
	}
	ns = namespace_new(name, owner, group, mode);
	if (!ns)
		return -ENOMEM;
	GAP_OPEN(registry->namespaces, i, registry->n_namespaces);
	registry->namespaces[i] = ns;
	registry->n_namespaces++;
	*ret = ns;
	return 0;
}

static void drop_if_unused(struct registry *registry, struct namespace *ns)
{
	size_t i = place_of_namespace(registry, ns->name);

	if (ns->n_events > 0 || ns->configured)
		return;
	assert(i < registry->n_namespaces && registry->namespaces[i] == ns);
	GAP_CLOSE(registry->namespaces, i, registry->n_namespaces);
	registry->n_namespaces--;
	namespace_free(ns);
}

int registry_configure(struct registry *registry, const char *name, uint32_t owner, uint32_t group,
		       uint32_t mode, enum namespace_live live)
{
	struct namespace *ns = registry_namespace(registry, name);
	int differs = ns && (ns->owner != owner || ns->group != group || ns->mode != mode);

	if (!ns) {
		int r = add_namespace(registry, name, owner, group, mode, &ns);

		if (r < 0)
			return r;
	}
	ns->owner = owner;
	ns->group = group;
	ns->mode = mode;
	ns->live = live;
	ns->configured = true;
	return differs;
}

void registry_unconfigure(struct registry *registry, struct namespace *ns)
{
	ns->configured = false;
	drop_if_unused(registry, ns);
}

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

struct event *registry_by_name(const struct registry *registry, const char *ns, const char *name)
{
	size_t i = place_of_name(registry, ns, name);

	if (i == registry->n_events || compare_names(registry->by_name[i], ns, name) != 0)
		return NULL;
	return registry->by_name[i];
}

struct event *registry_by_id(const struct registry *registry, uint64_t id)
{
	size_t i;

	if (id == 0)
		return NULL;
	i = registry_after(registry, id - 1);
	if (i == registry->n_settled || registry->by_id[i]->truth.id != id)
		return NULL;
	return registry->by_id[i];
}

int registry_add(struct registry *registry, const struct pp_spec *spec, struct event **ret)
{
	size_t i = place_of_name(registry, spec->ns, spec->name);
	struct namespace *ns = registry_namespace(registry, spec->ns);
	struct event *e;
	int r;

	if (i < registry->n_events &&
	    compare_names(registry->by_name[i], spec->ns, spec->name) == 0)
		return -EEXIST;
	r = make_room(registry);
	if (r < 0)
		return r;
	if (!ns) {
		r = add_namespace(registry, spec->ns, spec->owner, spec->group, spec->mode, &ns);
		if (r < 0)
			return r;
	}
	e = event_new(spec, ns);
	if (!e) {
		drop_if_unused(registry, ns);
		return -ENOMEM;
	}
	ns->n_events++;
	GAP_OPEN(registry->by_name, i, registry->n_events);
	registry->by_name[i] = e;
	registry->n_events++;
	*ret = e;
	return 0;
}

int registry_settle(struct registry *registry, struct event *e, const struct pp_event *truth)
{
	size_t i = registry_after(registry, truth->id);

	if (registry_by_id(registry, truth->id))
		return -EEXIST;
	assert(compare_names(e, truth->spec.ns, truth->spec.name) == 0);
	e->truth = *truth;
	event_rest(e);
	GAP_OPEN(registry->by_id, i, registry->n_settled);
	registry->by_id[i] = e;
	registry->n_settled++;
	return 0;
}

void registry_remove(struct registry *registry, struct event *e)
{
	size_t i = place_of_name(registry, e->truth.spec.ns, e->truth.spec.name);

	assert(i < registry->n_events && registry->by_name[i] == e);
	GAP_CLOSE(registry->by_name, i, registry->n_events);
	registry->n_events--;
	if (e->truth.id) {
		i = registry_after(registry, e->truth.id - 1);
		assert(i < registry->n_settled && registry->by_id[i] == e);
		GAP_CLOSE(registry->by_id, i, registry->n_settled);
		registry->n_settled--;
	}
	e->ns->n_events--;
	drop_if_unused(registry, e->ns);
	event_free(e);
}

void registry_done(struct registry *registry)
{
	while (registry->n_events > 0)
		registry_remove(registry, registry->by_name[registry->n_events - 1]);
	assert(registry->n_settled == 0);
	while (registry->n_namespaces > 0)
		namespace_free(registry->namespaces[--registry->n_namespaces]);
	free(registry->by_name);
	free(registry->by_id);
	free(registry->namespaces);
	*registry = (struct registry){ 0 };
}
