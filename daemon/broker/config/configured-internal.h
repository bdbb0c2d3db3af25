/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What configured.c and configured-compare.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/config/configured.h"
#include "daemon/broker/syntax/machine.h"

/* One order at a time is under way, so that clients' orders come between. */
struct pass {
	struct waiter waiter; /* first: our waiter is the pass */
	struct configured *owner;
	const struct config *config;
	const struct dropins *dropins;
	struct configured_result result;
	struct machine machine;

	enum { DELETING, WANTING, FINISHED } phase;
	uint64_t after; /* DELETING: of the ids, those up to here have been seen */
	size_t next;	/* WANTING: index into the dropins */
	const struct dropin_event *about; /* what the order is about; DELETING: NULL */
	enum { CREATE, CHANGE, DELETE, REPLACE } order;
	bool waiting, replacing;

	struct pp_msg_create_request request;
	struct pp_parsed parsed;
};

/* Whether the difference is one that a change can make. p->request is w's, and `wanted` its
 * outline. */
bool pass_can_change(struct pass *p, const struct dropin_event *w, const struct pp_spec *runs,
		     const struct pp_spec *wanted);

/* If so, which: of PP_CHANGE_*; 0: there is no difference. */
uint32_t pass_find_changes(const struct pp_spec *runs, const struct pp_spec *wanted);
