/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bar on stderr, if that is a terminal and what is shown takes longer than a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;	 /* NULL: nothing is ever shown */
	uint64_t started, shown; /* ns */
	bool is_shown;
};

void progress_start(struct progress *p, const char *what);

/* done of all; cheap enough to be told often. */
void progress_tell(struct progress *p, uint64_t done, uint64_t all);

/* Takes the bar away. */
void progress_end(struct progress *p);
