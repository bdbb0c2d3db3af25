// SPDX-License-Identifier: LGPL-2.1-or-later
#include "proto/nearest.h"

#include <string.h>

#include "proto/macro.h"

void pp_nearest_begin(struct pp_nearest *s, const char *text, size_t counts)
{
	*s = (struct pp_nearest){ .text = text, .n = strlen(text) };
	if (counts >= 3 && s->n < PP_NEAREST_SIZE)
		s->limit = MIN((unsigned)counts / 3, 4U) + 1;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* One row of the table: the distances of b's first i letters to each beginning of a. */
static void next_row(const char *a, size_t n, const char *b, size_t i,
		     unsigned rows[3][PP_NEAREST_SIZE])
{
	const unsigned *older = rows[(i + 1) % 3], *old = rows[(i + 2) % 3];
	unsigned *row = rows[i % 3];

	row[0] = (unsigned)i;
	for (size_t j = 1; j <= n; j++) {
		unsigned same = lower(a[j - 1]) == lower(b[i - 1]);

		row[j] = MIN(MIN(row[j - 1], old[j]) + 1, old[j - 1] + !same);
		if (i > 1 && j > 1 && lower(a[j - 1]) == lower(b[i - 2]) &&
		    lower(a[j - 2]) == lower(b[i - 1]))
			row[j] = MIN(row[j], older[j - 2] + 1);
	}
}

/* Letters to insert, drop or replace, and neighbours to swap. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned rows[3][PP_NEAREST_SIZE];

	for (size_t j = 0; j <= n; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= m; i++)
		next_row(a, n, b, i, rows);
	return rows[m % 3][n];
}

void pp_nearest_consider(struct pp_nearest *s, const char *name)
{
	size_t m = strlen(name), apart = m > s->n ? m - s->n : s->n - m;
	unsigned d;

	if (apart >= s->limit)
		return;
	d = distance(s->text, s->n, name, m);
	if (d >= s->limit)
		return;
	s->limit = d;
	s->best = name;
}
