/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bar on stderr, if that is a terminal and the work takes longer than a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;	 /* NULL: no bar is ever shown */
	uint64_t started, shown; /* ns */
	bool is_shown;
};

void progress_start(struct progress *p, const char *what);

/* `done` of `all`; cheap enough to call often. */
void progress_tell(struct progress *p, uint64_t done, uint64_t all);

/* Removes the bar. */
void progress_end(struct progress *p);
