/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of one recording, each with the time of its end in its name, as perf record writes
 * them: perf.data.2026112203584217. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/output/outfile.h"

struct dated {
	char **paths; /* in the order of creation */
	size_t n;
};

/* Names f after `path` and now, as nothing else is named, and closes it. ret: that name, which the
 * caller frees. -errno: -ENOMEM, or as outfile_commit(). */
int dated_commit(struct outfile *f, const char *path, char **ret);

/* Adds path, which d takes over; removes the oldest files beyond max (0: keeps all). */
int dated_add(struct dated *d, char *path, uint64_t max);
void dated_done(struct dated *d);
