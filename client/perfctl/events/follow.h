/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follows events on the terminal: prints their records as they arrive, until a signal or their
 * end. */
#pragma once

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/selection.h"
#include "client/perfctl/perfctl.h"

struct follow_options {
	bool on;
	bool wakeup; /* be woken, instead of polling */
	bool copies; /* of the rings, even if the rings themselves can be opened */
};

/* Takes over p, over which the events were opened. Settles the selection. newest: how many records of
 * each event to begin with, selected or not. Returns an exit code. */
int follow(const struct call *call, struct perfpersist *p, const struct chosen *events,
	   struct selection *selection, const struct follow_options *options, uint64_t newest);
