/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follows an event on the terminal: prints its records as they arrive, until a signal or its
 * end. */
#pragma once

#include "client/perfctl/perfctl.h"

struct follow_options {
	bool on;
	bool wakeup; /* be woken, instead of polling */
	bool copies; /* of the rings, even if the rings themselves can be opened */
};

/* Takes over p, over which e was opened. newest: how many records to begin with. Returns an exit
 * code. */
int follow(const struct call *call, struct perfpersist *p, struct perfpersist_event *e,
	   const struct event_name *name, const struct follow_options *options, uint64_t newest);
