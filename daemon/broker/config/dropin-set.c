// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events that files name, sorted, and their requests. Must not know how files are written. */
#include <string.h>

#include "daemon/broker/config/dropin-file.h"
#include "proto/macro.h"

/* ── requests, as short as they are ─────────────────────────────────────────────────────── */

struct packed_request {
	size_t size;
	uint8_t bytes[];
};

struct packed_request *dropin_pack(const struct pp_msg_create_request *request)
{
	size_t size = offsetof(struct pp_msg_create_request, selections) +
		      request->count * sizeof(request->selections[0]);
	struct packed_request *p = malloc(sizeof(*p) + size);

	if (!p)
		return NULL;
	p->size = size;
	memcpy(p->bytes, request, size);
	return p;
}

void dropin_request(const struct dropin_event *e, struct pp_msg_create_request *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, e->request->bytes, e->request->size);
}

/* ── the set ────────────────────────────────────────────────────────────────────────────── */

static size_t place_of(const struct dropins *d, const char *ns, const char *name)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = strcmp(d->events[middle]->ns, ns);

		if (c == 0)
			c = strcmp(d->events[middle]->name, name);
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct dropin_event *dropins_find(const struct dropins *d, const char *ns, const char *name)
{
	size_t i = place_of(d, ns, name);
	struct dropin_event *e = i < d->n ? d->events[i] : NULL;

	return e && strcmp(e->ns, ns) == 0 && strcmp(e->name, name) == 0 ? e : NULL;
}

const struct dropin_event *dropins_event(const struct dropins *d, const char *ns, const char *name)
{
	return dropins_find(d, ns, name);
}

struct dropin_event *dropins_add(struct dropins *d, const struct dropin_event *new)
{
	size_t i = place_of(d, new->ns, new->name);
	struct dropin_event *e;

	if (d->n == d->room) {
		size_t room = d->room ? d->room * 2 : 16;
		struct dropin_event **p = reallocarray(d->events, room, sizeof(*p));

		if (!p)
			return NULL;
		d->events = p;
		d->room = room;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = *new;
	e->request = NULL;
	memmove(&d->events[i + 1], &d->events[i], (d->n - i) * sizeof(*d->events));
	d->events[i] = e;
	d->n++;
	return e;
}

void dropins_done(struct dropins *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->events[i]->request);
		free(d->events[i]);
	}
	for (size_t i = 0; i < d->n_paths; i++)
		free(d->paths[i]);
	free(d->events);
	free(d->paths);
	*d = (struct dropins){ 0 };
}

void dropins_free(struct dropins *d)
{
	if (!d)
		return;
	dropins_done(d);
	free(d);
}

void cleanup_dropins(struct dropins **d)
{
	dropins_free(*d);
}
