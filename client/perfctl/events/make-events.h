/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * perfctl record -e EVENT… -P NAMESPACE: an event for each -e, named after what it records.
 */
#pragma once

#include "client/perfctl/perfctl.h"

#define MAKE_EVENTS_MAX 64

struct make_events {
	const char *ns;	  /* -P; NULL: none are made */
	const char *cpus; /* -C */
	struct perfpersist_create_options opts;
	struct perfpersist_selection events[MAKE_EVENTS_MAX];
	size_t n;
};

/* Each takes an option, and returns an exit code. */
int make_events_event(struct call *call, struct make_events *m, const char *event);
int make_events_filter(struct call *call, struct make_events *m, const char *filter);
int make_events_option(struct call *call, struct make_events *m, int opt, const char *value);

/* Makes all of them, or, if one cannot be made, none. */
int make_events(struct call *call, struct perfpersist *p, const struct make_events *m);
