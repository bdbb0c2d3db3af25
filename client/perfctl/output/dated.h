/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of one recording, each with the time of its end in its name, as perf record writes
 * them: perf.data.2026112203584217. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dated {
	char **paths; /* in the order of creation */
	size_t n;
};

/* An unused name for a file that is complete now. The caller frees it. NULL: -ENOMEM. */
char *dated_name(const char *path);

/* Adds path, which d takes over; removes the oldest files beyond max (0: keeps all). */
int dated_add(struct dated *d, char *path, uint64_t max);
void dated_done(struct dated *d);
