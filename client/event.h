/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An opened event: the rings of its CPUs, and what was known of it when it was opened. Knows
 * nothing of where its descriptors came from.
 */
#ifndef PP_CLIENT_EVENT_H
#define PP_CLIENT_EVENT_H

#include <stdatomic.h>

#include "client/perfpersist.h"
#include "client/ring.h"

#define CLIENT_ANY_CPU (-1)

struct perfpersist_event {
	atomic_uint refs; /* the caller's, and one per snapshot */
	struct perfpersist_info base;
	struct client_ring *rings;
	size_t n, cap;
	char *format; /* copied when it is first asked for */
	size_t format_size;
};

/* base: what is known already; NULL: the first ring will tell. -ENOMEM. */
int client_event_new(const struct perfpersist_info *base, struct perfpersist_event **ret);

/*
 * Adds a ring; takes fd over, whatever the outcome. cpu: whose it must be, or CLIENT_ANY_CPU;
 * size as for client_ring_open(). -EINVAL (of another event, or the CPU is there already) or
 * as client_ring_open().
 */
int client_event_add(struct perfpersist_event *e, int fd, int cpu, size_t size);

struct perfpersist_event *client_event_ref(struct perfpersist_event *e);

static inline void client_event_cleanup(struct perfpersist_event **e)
{
	perfpersist_event_free(*e);
}

#endif
