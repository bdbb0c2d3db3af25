/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far back an event's rings reach. */
#pragma once

#include "client/perfpersist.h"

struct history {
	struct perfpersist_event *e;
	struct perfpersist_snapshot *snapshot; /* created on first use */
};

/*
 * Reads all rings again. It copies them; rings so large that a copy each second would be noticeable
 * are read only every tenth time. 0; -errno.
 */
int history_look(struct history *h, unsigned turn);
void history_done(struct history *h);

/* Seconds from now (CLOCK_MONOTONIC, ns) back to the oldest record of a ring; < 0: it has none. */
double history_of(const struct history *h, size_t ring, uint64_t now);
