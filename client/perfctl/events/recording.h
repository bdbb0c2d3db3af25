/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that are followed into perf.data files: all their records from a moment on, in order of
 * time, with the sideband of that time, and a count of what could not be read in time.
 */
#pragma once

#include "client/perfctl/events/selection.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/perfctl.h"

struct recording_options {
	const char *output; /* FILE, or "-" */
	struct selection *selection;
	bool history;	      /* begin with all that the rings hold */
	bool past;	      /* begin with what the selection wants of that */
	uint64_t max_size;    /* bytes after which it ends; 0: none */
	bool switches;	      /* several files, each named FILE.TIME */
	uint64_t switch_size; /* begin another one after so many bytes; 0: not */
	uint64_t switch_time; /* after so many ns; 0: not */
	uint64_t max_files;   /* remove the oldest beyond so many; 0: keep all */
};

struct recording;

/* infos: which events, found just now. Connects for itself, because it is told what becomes of them.
 * Returns an exit code; has complained if not EXIT_OK. */
int recording_new(struct call *call, const struct perfpersist_info *infos, size_t n,
		  const struct recording_options *options, struct recording **ret);

/* Writes what there is by now, and begins another file where it is time for it. 0; 1: it is over:
 * max_size is reached, or all events are gone; < 0: it cannot go on, and has complained. */
int recording_go_on(struct recording *recording);

/* Waits for more, until a signal, or `until` (CLOCK_MONOTONIC, ns). */
void recording_wait(struct recording *recording, uint64_t until);

/* Begins another file now; without `switches` nothing is done. As recording_go_on(). */
int recording_switch(struct recording *recording);

/* Reads what was recorded up to now, and finishes the file. Returns an exit code. */
int recording_finish(struct recording *recording);

/* What has not been finished is not there. */
void recording_free(struct recording *recording);
