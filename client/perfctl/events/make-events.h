/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of create and record for new events; and perfctl record -e EVENT… -P NAMESPACE, which
 * creates an event for each -e, named after what it records.
 */
#pragma once

#include "client/perfctl/perfctl.h"

#define MAKE_EVENTS_MAX 64

struct make_events {
	const char *ns; /* record: NULL: creates no events */
	bool all_cpus;
	struct perfpersist_create_options opts; /* without the events */
	struct perfpersist_selection events[MAKE_EVENTS_MAX];
	size_t n;
};

extern const struct verb_option make_events_options[]; /* all but -e and the namespace */

/* Takes -e. Returns an exit code. */
int make_events_event(struct call *call, struct make_events *m, const char *event);

/* Creates all of them, or none if one fails. */
int make_events(struct call *call, struct perfpersist *p, const struct make_events *m);
