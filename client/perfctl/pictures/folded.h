/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call chains as lines of text, "comm;function;function weight", the outermost first: what the
 * flame graph tools read. Functions of the kernel end in "_[k]".
 */
#pragma once

#include <stdio.h>

#include "client/perfctl/pictures/aggregate.h"

struct folded {
	bool by_period; /* else each sample is 1 */
	bool events;	/* the event is the innermost function of each: there are several */
	uint64_t lines, weight;
};

/* Of records without an address the event is the innermost in any case. What cannot be written
 * shows in ferror(). */
void folded_write(const struct aggregate *a, struct folded *o, FILE *f);
