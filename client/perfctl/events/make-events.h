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

/* Takes -c, or -F if the option has PERFPERSIST_FREQ, which goes into *flags. Returns an exit code. */
int make_events_rate(const struct given *g, uint64_t *period, uint32_t *flags);

/* For which events under the name -c or -F is, if it is not for all: "; -F is for …". */
void make_events_print_sampled(struct perfpersist *p, const struct perfpersist_info *info);

/* On standard error: who reads the user stacks that it records, if others than root do. */
void make_events_note_readers(const struct perfpersist_info *info);

/* Takes -e. Returns an exit code. */
int make_events_event(struct call *call, struct make_events *m, const char *event);

/* The name of a new event, which -n may complete; and -a and -C. Returns an exit code. */
int make_events_name(struct call *call, const struct make_events *m, const char *operand,
		     struct event_name *ret);

/* Creates all of them, or none if one fails. */
int make_events(struct call *call, struct perfpersist *p, const struct make_events *m);
