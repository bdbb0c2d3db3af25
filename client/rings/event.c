// SPDX-License-Identifier: LGPL-2.1-or-later
/* The set of rings of one event, and the rule for which rings belong together. */
#include "client/rings/event.h"

#include <string.h>

#include "client/info.h"
#include "client/public.h"

int client_event_new(const struct perfpersist_info *base, struct perfpersist_event **ret)
{
	struct perfpersist_event *e = calloc(1, sizeof(*e));

	if (!e)
		return client_fail(-ENOMEM, "cannot open the event: out of memory");
	e->refs = 1;
	if (base)
		e->base = *base;
	*ret = e;
	return 0;
}

struct perfpersist_event *client_event_ref(struct perfpersist_event *e)
{
	e->refs++;
	return e;
}

_public_ void perfpersist_event_free(struct perfpersist_event *e)
{
	if (!e || --e->refs > 0)
		return;
	for (size_t i = 0; i < e->n; i++)
		client_ring_close(&e->rings[i]);
	client_catalog_done(&e->catalog);
	free(e->rings);
	free(e->format);
	free(e);
}

/* ── Rings that belong together ──────────────────────────────────────────────────────────────── */

/* Rings keep the id of their creation. An event that inherited them from a deleted name is younger
 * than they are; a second name may be older than the newest rings that it shares. */
static bool may_have(const struct perfpersist_info *base, uint64_t event_id)
{
	return event_id <= base->id || event_id == base->shares;
}

static int check_other(const struct client_ring *ring, const struct client_ring *other)
{
	const struct pp_ring_header *h = &ring->header, *o = &other->header;

	if (h->event_id != o->event_id)
		return client_fail(-EINVAL,
				   "the ring in descriptor %d is of event %llu (%s/%s), that in %d "
				   "of event %llu: open each event by itself",
				   ring->fd, (unsigned long long)h->event_id, h->ns, h->name,
				   other->fd, (unsigned long long)o->event_id);
	if (h->set != o->set)
		return client_fail(-ESTALE,
				   "descriptors %d and %d are rings of different sets: the event "
				   "got new buffers in between; open it again",
				   other->fd, ring->fd);
	if (h->cpu == o->cpu)
		return client_fail(-EINVAL,
				   "descriptors %d and %d are both CPU %u's ring: give one",
				   other->fd, ring->fd, h->cpu);
	if (h->sample_type != o->sample_type || h->n_sources != o->n_sources ||
	    memcmp(h->boot_id, o->boot_id, sizeof(h->boot_id)) != 0)
		return client_fail(-EINVAL,
				   "descriptors %d and %d are rings of different events: open each "
				   "event by itself",
				   other->fd, ring->fd);
	return 0;
}

/* Checks the ring's header against the event and its other rings. */
static int check_member(const struct perfpersist_event *e, const struct client_ring *ring, int cpu)
{
	const struct pp_ring_header *h = &ring->header;

	if (cpu != CLIENT_ANY_CPU && h->cpu != (uint32_t)cpu)
		return client_fail(-EBADMSG, "the ring handed out for CPU %d says it is CPU %u's",
				   cpu, h->cpu);
	if (cpu != CLIENT_ANY_CPU && !may_have(&e->base, h->event_id))
		return client_fail(-EINVAL, "its ring is of event %llu (%s/%s)",
				   (unsigned long long)h->event_id, h->ns, h->name);
	for (size_t i = 0; i < e->n; i++) {
		int r = check_other(ring, &e->rings[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The error message speaks of our descriptors, which mean nothing to a user who opened an event by
 * name. */
static int name_event(const struct perfpersist_event *e, int cpu, int error)
{
	char why[CLIENT_SENTENCE_SIZE];

	snprintf(why, sizeof(why), "%s", client_sentence());
	return client_fail(error, "cannot open %s/%s, CPU %d: %s", e->base.ns, e->base.name, cpu,
			   why);
}

static int make_room(struct perfpersist_event *e)
{
	size_t cap = e->cap ? 2 * e->cap : 4;
	struct client_ring *rings;

	if (e->n < e->cap)
		return 0;
	rings = reallocarray(e->rings, cap, sizeof(*rings));
	if (!rings)
		return client_fail(-ENOMEM, "cannot open the event: out of memory");
	e->rings = rings;
	e->cap = cap;
	return 0;
}

int client_event_add(struct perfpersist_event *e, int fd, int cpu, size_t size)
{
	struct client_ring ring;
	int r;

	r = client_ring_open(fd, size, &ring);
	if (r < 0)
		return cpu == CLIENT_ANY_CPU ? r : name_event(e, cpu, r);
	r = check_member(e, &ring, cpu);
	if (r < 0 && cpu != CLIENT_ANY_CPU)
		name_event(e, cpu, r);
	if (r >= 0)
		r = make_room(e);
	if (r < 0) {
		client_ring_close(&ring);
		return r;
	}
	if (!e->base.sz)
		client_info_from_header(&ring.header, &e->base);
	if (e->n == 0)
		e->header = ring.header;
	e->rings[e->n++] = ring;
	return 0;
}

int client_event_add_catalog(struct perfpersist_event *e, int fd, size_t size)
{
	struct client_catalog c;
	int r = client_catalog_open(fd, size, &c);

	if (r < 0)
		return r;
	if (e->catalog.bytes) {
		client_catalog_done(&c);
		return client_fail(-EINVAL, "descriptor %d is a second catalog: give one", fd);
	}
	e->catalog = c;
	return 0;
}

int client_event_complete(struct perfpersist_event *e)
{
	const struct pp_ring_header *h = &e->header;
	const struct client_catalog *c = &e->catalog;

	if (e->n == 0)
		return 0;
	if (h->n_sources > 1 && !c->bytes)
		return client_fail(
			-EINVAL,
			"cannot open %s/%s: its rings hold the records of %u events, and "
			"the catalog that tells them apart is missing",
			e->base.ns, e->base.name, h->n_sources);
	if (c->bytes && (c->event_id != h->event_id || c->n != MAX(h->n_sources, 1U)))
		return client_fail(-EINVAL,
				   "cannot open %s/%s: its catalog is that of event %llu with %u "
				   "sources, not of event %llu with %u",
				   e->base.ns, e->base.name, (unsigned long long)c->event_id, c->n,
				   (unsigned long long)h->event_id, h->n_sources);
	e->base.buffer = h->data_size;
	e->base.set = MAX(h->set, 1U);
	return 0;
}

int client_event_renew(struct perfpersist_event *e, struct perfpersist_event *new)
{
	const struct pp_ring_header *h = &e->header, *n = &new->header;

	if (e->n && new->n &&
	    (h->event_id != n->event_id || h->set != n->set || h->n_sources != n->n_sources ||
	     h->sample_type != n->sample_type || memcmp(h->boot_id, n->boot_id, 16) != 0))
		return client_fail(
			-ESTALE,
			"the rings of %s/%s are others by now: it was given new buffers, "
			"or made anew; open it again",
			e->base.ns, e->base.name);

	struct client_ring *rings = e->rings;
	size_t count = e->n, cap = e->cap;

	e->rings = new->rings;
	e->n = new->n;
	e->cap = new->cap;
	e->base = new->base;
	e->is_copy = new->is_copy;
	e->copied = new->copied;
	e->generation++;
	new->rings = rings;
	new->n = count;
	new->cap = cap;
	if (count == 0)
		e->header = *n;
	return 0;
}
