/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The traces of AUX areas that go into a snapshot. */
#pragma once

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/selection.h"

struct taken_traces {
	bool has_samples; /* of events beside them */
	struct event_traces {
		int *fds; /* one of each CPU */
		uint32_t n;
	} * of_events;
	size_t n_events;
	uint64_t n;	   /* in all */
	uint32_t untraced; /* of the one that was stopped longest, ms */
};

/* Before the records are copied: what these tell of the time of a trace is all there then. A trace that cannot be had,
 * or that perf could not decode beside those of the first PMU, is left out, and said. -ENOMEM; -errno. */
int take_traces(struct perfpersist *p, const struct chosen *events, const struct selection *s,
		struct taken_traces *ret);

/* Those of an event, which has this number in the file. One that is damaged is left out, and said. */
void put_traces(const struct taken_traces *t, size_t event, struct perfpersist_perfdata *data,
		int number);
void taken_traces_done(struct taken_traces *t);
