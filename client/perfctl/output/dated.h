/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of one recording, each with the time at which it was finished behind its name, as perf
 * record writes them: perf.data.2026112203584217. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dated {
	char **paths; /* in the order in which they were made */
	size_t n;
};

/* A name for a file that is done now; none is there that has it. The caller's to free. NULL:
 * -ENOMEM. */
char *dated_name(const char *path);

/* path is one of them now, and d's; the oldest beyond max (0: any number) are removed. */
int dated_add(struct dated *d, char *path, uint64_t max);
void dated_done(struct dated *d);
