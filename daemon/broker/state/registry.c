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
static size_t place_of_name(const struct registry *r, const char *ns, const char *name)
{
	size_t low = 0, high = r->n_events;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_names(r->by_name[middle], ns, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t registry_after(const struct registry *r, uint64_t id)
{
	size_t low = 0, high = r->n_settled;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->by_id[middle]->truth.id <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t place_of_namespace(const struct registry *r, const char *name)
{
	size_t low = 0, high = r->n_namespaces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(r->namespaces[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Opens (closes) a gap at index i of an array that holds n pointers. */
#define GAP_OPEN(array, i, n) \
	memmove(&(array)[(i) + 1], &(array)[i], ((n) - (i)) * sizeof(*(array)))
#define GAP_CLOSE(array, i, n) \
	memmove(&(array)[i], &(array)[(i) + 1], ((n) - (i)-1) * sizeof(*(array)))

/* Room for one more event in both arrays, so that settling it can't fail later. */
static int make_room(struct registry *r)
{
	size_t room = r->room ? r->room * 2 : 64;
	struct event **p;

	if (r->n_events < r->room)
		return 0;
	p = reallocarray(r->by_name, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r->by_name = p;
	p = reallocarray(r->by_id, room, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r->by_id = p;
	r->room = room;
	return 0;
}

/* ── namespaces ─────────────────────────────────────────────────────────────────────────── */

struct namespace *registry_namespace(const struct registry *r, const char *name)
{
	size_t i = place_of_namespace(r, name);

	if (i == r->n_namespaces || strcmp(r->namespaces[i]->name, name) != 0)
		return NULL;
	return r->namespaces[i];
}

static int add_namespace(struct registry *r, const char *name, uint32_t owner, uint32_t group,
			 uint32_t mode, struct namespace **ret)
{
	size_t i = place_of_namespace(r, name);
	struct namespace *ns;

	if (r->n_namespaces == r->namespace_room) {
		size_t room = r->namespace_room ? r->namespace_room * 2 : 16;
		struct namespace **p = reallocarray(r->namespaces, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		r->namespaces = p;
		r->namespace_room = room;
	}
	ns = namespace_new(name, owner, group, mode);
	if (!ns)
		return -ENOMEM;
	GAP_OPEN(r->namespaces, i, r->n_namespaces);
	r->namespaces[i] = ns;
	r->n_namespaces++;
	*ret = ns;
	return 0;
}

static void drop_if_unused(struct registry *r, struct namespace *ns)
{
	size_t i = place_of_namespace(r, ns->name);

	if (ns->n_events > 0 || ns->configured)
		return;
	assert(i < r->n_namespaces && r->namespaces[i] == ns);
	GAP_CLOSE(r->namespaces, i, r->n_namespaces);
	r->n_namespaces--;
	namespace_free(ns);
}

int registry_configure(struct registry *r, const char *name, uint32_t owner, uint32_t group,
		       uint32_t mode, enum namespace_live live)
{
	struct namespace *ns = registry_namespace(r, name);
	int differs = ns && (ns->group != group || ns->mode != mode);

	if (!ns) {
		int err = add_namespace(r, name, owner, group, mode, &ns);

		if (err < 0)
			return err;
	}
	ns->owner = owner;
	ns->group = group;
	ns->mode = mode;
	ns->live = live;
	ns->configured = true;
	return differs;
}

void registry_unconfigure(struct registry *r, struct namespace *ns)
{
	ns->configured = false;
	drop_if_unused(r, ns);
}

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

struct event *registry_by_name(const struct registry *r, const char *ns, const char *name)
{
	size_t i = place_of_name(r, ns, name);

	if (i == r->n_events || compare_names(r->by_name[i], ns, name) != 0)
		return NULL;
	return r->by_name[i];
}

struct event *registry_by_id(const struct registry *r, uint64_t id)
{
	size_t i;

	if (id == 0)
		return NULL;
	i = registry_after(r, id - 1);
	if (i == r->n_settled || r->by_id[i]->truth.id != id)
		return NULL;
	return r->by_id[i];
}

int registry_add(struct registry *r, const struct pp_spec *spec, struct event **ret)
{
	size_t i = place_of_name(r, spec->ns, spec->name);
	struct namespace *ns = registry_namespace(r, spec->ns);
	struct event *e;
	int err;

	if (i < r->n_events && compare_names(r->by_name[i], spec->ns, spec->name) == 0)
		return -EEXIST;
	err = make_room(r);
	if (err < 0)
		return err;
	if (!ns) {
		err = add_namespace(r, spec->ns, spec->owner, spec->group, spec->mode, &ns);
		if (err < 0)
			return err;
	}
	e = event_new(spec, ns);
	if (!e) {
		drop_if_unused(r, ns);
		return -ENOMEM;
	}
	ns->n_events++;
	GAP_OPEN(r->by_name, i, r->n_events);
	r->by_name[i] = e;
	r->n_events++;
	*ret = e;
	return 0;
}

int registry_settle(struct registry *r, struct event *e, const struct pp_event *truth)
{
	size_t i = registry_after(r, truth->id);

	if (registry_by_id(r, truth->id))
		return -EEXIST;
	assert(compare_names(e, truth->spec.ns, truth->spec.name) == 0);
	e->truth = *truth;
	event_rest(e);
	GAP_OPEN(r->by_id, i, r->n_settled);
	r->by_id[i] = e;
	r->n_settled++;
	return 0;
}

void registry_remove(struct registry *r, struct event *e)
{
	size_t i = place_of_name(r, e->truth.spec.ns, e->truth.spec.name);

	assert(i < r->n_events && r->by_name[i] == e);
	GAP_CLOSE(r->by_name, i, r->n_events);
	r->n_events--;
	if (e->truth.id) {
		i = registry_after(r, e->truth.id - 1);
		assert(i < r->n_settled && r->by_id[i] == e);
		GAP_CLOSE(r->by_id, i, r->n_settled);
		r->n_settled--;
	}
	e->ns->n_events--;
	drop_if_unused(r, e->ns);
	event_free(e);
}

void registry_done(struct registry *r)
{
	while (r->n_events > 0)
		registry_remove(r, r->by_name[r->n_events - 1]);
	assert(r->n_settled == 0);
	while (r->n_namespaces > 0)
		namespace_free(r->namespaces[--r->n_namespaces]);
	free(r->by_name);
	free(r->by_id);
	free(r->namespaces);
	*r = (struct registry){ 0 };
}
