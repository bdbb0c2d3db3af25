/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes a snapshot of events into a perf.data file: finds them, copies their rings, asks for the
 * sideband of that time, merges all CPUs and events in order of time, writes.
 */
#pragma once

#include <stdlib.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/selection.h"
#include "client/perfctl/perfctl.h"

/* The command line as it was typed, for a file: the program, then argc words from the verb on. The caller frees the
 * array. NULL: out of memory. */
static inline const char **call_typed(const struct call *call)
{
	const char **typed = calloc((size_t)call->argc + 1, sizeof(*typed));

	for (int i = 0; typed && i < call->argc; i++)
		typed[i + 1] = call->argv[i];
	if (typed)
		typed[0] = "perfctl";
	return typed;
}

struct take_result {
	/* damaged: rings that could not be read completely */
	uint64_t events, records, bytes, damaged;
	uint64_t traces;   /* of CPUs, from AUX areas */
	bool has_samples;  /* of events beside these */
	uint32_t untraced; /* ms, of the area that pauses and copies stopped longest */
	/* records of these events that were never written, since they began */
	uint64_t missed;
	bool missed_unknown;  /* that is a lower bound */
	uint64_t first, last; /* times of samples */
};

/*
 * names: NAME, NAMESPACE/NAME, NAMESPACE/ or a glob of these; none: all that the caller may read.
 * fd: an empty file, or (pipe) anything that takes bytes. progress: shown on stderr, if that is a
 * terminal and it takes longer than a second. Reports missing records on stderr. SIGINT or SIGTERM
 * (signals_catch()) end it, unless they came before. Returns an exit code; has complained if it
 * is not EXIT_OK.
 */
int take(struct call *call, struct perfpersist *p, char **names, size_t n_names,
	 struct selection *selection, int fd, bool pipe, bool progress, struct take_result *ret);

/* What of an event is taken: records up to a time, and those before another time only if records of
 * another event come before them. 0: all. */
struct take_window {
	uint64_t since, until;
};

/* The same for events that are open already, which become its own; windows: of each. Returns 0 or
 * -errno, and leaves it to the caller to complain of that. */
int take_opened(struct call *call, struct perfpersist *p, struct chosen *events,
		const struct take_window *windows, int fd, struct take_result *ret);
