/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes checkpoints of all events that ask for them, each in its own time. */
#pragma once

#include "client/perfctl/perfctl.h"

struct checkpoint_options {
	const char *directory; /* NULL: the instance's */
	uint64_t max_size;     /* bytes on the disk, of all files of this boot */
	uint64_t max_rate;     /* bytes a second (budget.h) */
	uint64_t keep;	       /* how many earlier boots' */
	bool once;	       /* one checkpoint of each */
};

/* Until a signal comes (SIGINT, SIGTERM); goes on while the daemon is away. Returns an exit code; has
 * complained if it is not EXIT_OK. */
int checkpoint(struct call *call, const struct checkpoint_options *options);
