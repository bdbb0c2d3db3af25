/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "Did you mean": the most similar of several names. Pure. */
#pragma once

#include <stddef.h>

#define PP_NEAREST_SIZE 128 /* longer texts are similar to nothing */

struct pp_nearest {
	const char *text, *best; /* best: NULL if no name is similar enough */
	size_t n;
	unsigned limit; /* the next name must be nearer */
};

/* The more of the text counts, the more letters may differ: a third of them, four at most. */
void pp_nearest_begin(struct pp_nearest *s, const char *text, size_t counts);

/* Looks at one more name, which must live as long as s->best is used. Upper and lower case are the same.
 * Costs at most PP_NEAREST_SIZE steps for each letter of the name, and next to nothing if the lengths
 * differ by more than the limit. */
void pp_nearest_consider(struct pp_nearest *s, const char *name);
