/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An opened event: the rings of its CPUs, its catalog, and its description as of the opening. Does
 * not know where its descriptors came from. */
#pragma once

#include <stdatomic.h>

#include "client/perfpersist.h"
#include "client/rings/catalog.h"
#include "client/rings/ring.h"

#define CLIENT_ANY_CPU (-1)

struct perfpersist_event {
	atomic_uint refs; /* one of the caller, and one per snapshot and follow */
	struct perfpersist_info base;
	bool is_copy;
	uint64_t copied; /* CLOCK_MONOTONIC, ns, before a daemon made the copies; 0: not known */
	unsigned generation; /* how often the rings were renewed */
	struct client_ring *rings;
	size_t n, cap;
	/* The first rings' header; pointers that callers have lead into it. */
	struct pp_ring_header header;
	struct client_catalog catalog;
	uint64_t clock_offset; /* to CLOCK_REALTIME, found at the first request */
	bool has_clock;
	char *format; /* copied at the first request */
	size_t format_size;
};

/* base: the known description; NULL: the first ring gives it. -ENOMEM. */
int client_event_new(const struct perfpersist_info *base, struct perfpersist_event **ret);

/*
 * Adds a ring; takes fd over, whatever the outcome. cpu: the expected CPU, or CLIENT_ANY_CPU; size
 * as for client_ring_open(). -EINVAL (of another event, or the CPU has a ring already), -ESTALE (of
 * another set than the other rings), or as client_ring_open().
 */
int client_event_add(struct perfpersist_event *e, int fd, int cpu, size_t size);

/* Likewise for the catalog; size as for client_catalog_open(). */
int client_event_add_catalog(struct perfpersist_event *e, int fd, size_t size);

/* Call after adding all rings: checks that they belong together and that a required catalog is
 * there. Takes over the facts that rings know better than their sender. -EINVAL. */
int client_event_complete(struct perfpersist_event *e);

/* Exchanges the rings of e and `new`, another opening of the same event. -ESTALE: they are of
 * another event or set. */
int client_event_renew(struct perfpersist_event *e, struct perfpersist_event *new);

/* Whether the rings were made since the machine was booted; true without any. */
bool client_event_is_of_this_boot(const struct perfpersist_event *e);

struct perfpersist_event *client_event_ref(struct perfpersist_event *e);

static inline void client_event_cleanup(struct perfpersist_event **e)
{
	perfpersist_event_free(*e);
}
