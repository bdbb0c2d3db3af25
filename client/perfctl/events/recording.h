/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows events into perf.data files: all their records from a moment on, in order of time, with
 * the sideband of that time, and a count of the records that were overwritten before they were
 * read.
 */
#pragma once

#include "client/perfctl/events/selection.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/perfctl.h"

struct recording_options {
	const char *output; /* FILE, or "-" */
	struct selection *selection;
	bool history;	      /* begin with all that the rings hold */
	bool past;	      /* begin with the part of that that the selection wants */
	uint64_t max_size;    /* bytes after which it ends; 0: none */
	bool switches;	      /* several files, each named FILE.TIME */
	uint64_t switch_size; /* begin another file after so many bytes; 0: not */
	uint64_t switch_time; /* after so many ns; 0: not */
	uint64_t max_files;   /* remove the oldest beyond so many; 0: keep all */
};

struct recording;

/* infos: the events, found just now. Opens its own connection, on which the daemon reports changes
 * of the events. Returns an exit code; has complained if not EXIT_OK. */
int recording_new(struct call *call, const struct perfpersist_info *infos, size_t n,
		  const struct recording_options *options, struct recording **ret);

/* Writes the records there are, and begins another file when it is time. 0; 1: it is over, because
 * max_size is reached or no event goes on; < 0: it cannot go on, and has complained. */
int recording_go_on(struct recording *recording);

/* Waits for more, until a signal, or `until` (CLOCK_MONOTONIC, ns). */
void recording_wait(struct recording *recording, uint64_t until);

/* Begins another file now; does nothing without `switches`. Returns as recording_go_on(). */
int recording_switch(struct recording *recording);

/* Reads what was recorded up to now, and finishes the file, also when recording could not go on; but
 * not when the file could not be written. Returns an exit code. */
int recording_finish(struct recording *recording);

/* Discards a file that is not finished. */
void recording_free(struct recording *recording);
