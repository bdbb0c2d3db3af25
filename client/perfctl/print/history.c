// SPDX-License-Identifier: LGPL-2.1-or-later
/* How far back an event's rings reach: walks a snapshot to its oldest records. */
#include "client/perfctl/print/history.h"

#include "proto/macro.h"

#define LARGE (64ULL << 20)
#define LARGE_TURNS 10

int history_look(struct history *h, unsigned turn)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	if (h->snapshot && turn % LARGE_TURNS) {
		r = perfpersist_event_info(h->e, &info);
		if (r < 0 || info.buffer * perfpersist_event_rings(h->e) > LARGE)
			return r;
	}
	if (!h->snapshot) {
		r = perfpersist_snapshot_new(h->e, &h->snapshot);
		if (r < 0)
			return r;
	}
	return perfpersist_snapshot_take(h->snapshot);
}

void history_done(struct history *h)
{
	perfpersist_snapshot_free(h->snapshot);
	*h = (struct history){};
}

double history_of(const struct history *h, size_t ring, uint64_t now)
{
	struct perfpersist_cursor *c;
	struct perfpersist_sample s;
	uint64_t oldest = 0;

	if (!h->snapshot || perfpersist_cursor_new(h->snapshot, ring, &c) < 0)
		return -1;
	while (perfpersist_cursor_next(c, &s) > 0)
		oldest = s.time;
	perfpersist_cursor_free(c);
	return oldest && now > oldest ? (now - oldest) / 1e9 : -1;
}
