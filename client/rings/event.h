/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An opened event: the rings of its CPUs, its catalog, and what was known of it when it was
 * opened. Knows nothing of where its descriptors came from.
 */
#pragma once

#include <stdatomic.h>

#include "client/perfpersist.h"
#include "client/rings/catalog.h"
#include "client/rings/ring.h"

#define CLIENT_ANY_CPU (-1)

struct perfpersist_event {
	atomic_uint refs; /* the caller's, and one per snapshot and follow */
	struct perfpersist_info base;
	bool is_copy;
	unsigned generation; /* of rings: how often they were renewed */
	struct client_ring *rings;
	size_t n, cap;
	/* Of the rings there were first; what was given to callers leads into these. */
	struct pp_ring_header header;
	struct client_catalog catalog;
	uint64_t clock_offset; /* of CLOCK_REALTIME, found when it is first asked for */
	bool has_clock;
	char *format; /* copied when it is first asked for */
	size_t format_size;
};

/* base: what is known already; NULL: the first ring will tell. -ENOMEM. */
int client_event_new(const struct perfpersist_info *base, struct perfpersist_event **ret);

/*
 * Adds a ring; takes fd over, whatever the outcome. cpu: whose it must be, or CLIENT_ANY_CPU;
 * size as for client_ring_open(). -EINVAL (of another event, or the CPU is there already),
 * -ESTALE (of another set of rings than those that are there) or as client_ring_open().
 */
int client_event_add(struct perfpersist_event *e, int fd, int cpu, size_t size);

/* The same for the catalog; size as for client_catalog_open(). */
int client_event_add_catalog(struct perfpersist_event *e, int fd, size_t size);

/* When all were added: do they belong together, and is the catalog there if they need one? What
 * the rings themselves know better than who handed them out is taken from them. -EINVAL. */
int client_event_complete(struct perfpersist_event *e);

/* Puts the rings of `new`, another opening of the same event, in place of e's, and e's into new.
 * -ESTALE: they are of another event or set. */
int client_event_renew(struct perfpersist_event *e, struct perfpersist_event *new);

struct perfpersist_event *client_event_ref(struct perfpersist_event *e);

static inline void client_event_cleanup(struct perfpersist_event **e)
{
	perfpersist_event_free(*e);
}
