/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Call chains as lines of text, "comm;function;function weight", the outermost first: the input of
 * flame graph tools. Functions of the kernel end in "_[k]". */
#pragma once

#include <stdio.h>

#include "client/perfctl/pictures/aggregate.h"

struct folded {
	bool by_period; /* otherwise each sample counts 1 */
	bool events;	/* several events: the event is the innermost function of each stack */
	uint64_t lines, weight;
};

/* For records without an address the event is the innermost function in any case. ferror() tells
 * write errors. */
void folded_write(const struct aggregate *a, struct folded *o, FILE *f);
