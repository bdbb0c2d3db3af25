/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes what triggers freeze into the spool, one file for each firing, and then releases it. */
#pragma once

#include "client/perfctl/events/spool.h"
#include "client/perfctl/perfctl.h"

struct collect_options {
	const char *directory;
	struct spool_limits limits;
	const struct event_name
		*triggers; /* what these have frozen; n_triggers 0: what is to be saved */
	size_t n_triggers;
	bool once;	 /* what there is, and no more */
	bool until_idle; /* ends when nothing has come for a few seconds */
	bool is_spool; /* the directory is the instance's: its owner and group may read what root writes */
};

/*
 * Until a signal comes (SIGINT, SIGTERM). What cannot be written, because the disk is full even
 * without the older files, waits and is tried again. Returns an exit code; has complained if it is
 * not EXIT_OK.
 */
int collect(struct call *call, const struct collect_options *options);
