/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adoption: an event on perf events that its creator opened. The event is made as any other, in a draft, but
 * its creator attaches the entry, and passes ids of the links. Until these are pinned and the draft is
 * renamed, nothing is ours: a dead engine's drafts are swept, and the perf events stay with the creator.
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/order.h"

/* Begins one; *ret_entry, the program to be attached, is the caller's. -EBUSY: too many are under way. */
int event_adopt(const struct pp_spec *spec, const struct pp_parsed *parsed,
		const struct pp_allowance *allowance, uid_t broker, struct pp_event *ret,
		int *ret_entry, struct failure *f);

/*
 * Takes these links, and unless there are more makes it an event. 1: it is one, *ret; 0. On failure the
 * adoption is forgotten.
 */
int event_attach(uint64_t id, const uint64_t *links, unsigned n, bool more, struct pp_event *ret,
		 struct failure *f);

/* Bytes of the rings of those that are under way. */
uint64_t event_adoptions_memory(void);

/* Forgets the adoption with that id, or with 0 all of them. Whether there was one. */
bool event_forget_adoption(uint64_t id);
