// SPDX-License-Identifier: LGPL-2.1-or-later
/* The comparison of `perfctl report --html --against`: what the text says, and what each line is about. */
#include <string.h>

#include "client/perfctl/replay/report-against.h"

/* What a part of the text prints. */
static int text_json(struct json *j, const char *key, const struct report_against *a,
		     void (*print)(const struct report_against *a, FILE *f))
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	print(a, f);
	if (fclose(f))
		return -ENOMEM;
	json_bytes(j, key, text, size);
	return 0;
}

static void columns_json(struct json *j)
{
	json_begin(j, "columns", '[');
	for (size_t i = 0; i < AGAINST_COLUMNS; i++) {
		json_begin(j, NULL, '[');
		json_string(j, NULL, against_columns[i].title);
		json_bool(j, NULL, against_columns[i].right);
		json_end(j, ']');
	}
	json_end(j, ']');
}

static int line_json(struct json *j, const struct report_against *a, const struct compare_change *c)
{
	_cleanup_(table_done) struct table t = { .n_columns = AGAINST_COLUMNS };
	const struct compare_change *function = against_function(a, c);

	if (c->item->class == COMPARE_SELF || c->item->class == COMPARE_TOTAL)
		function = c;
	if (against_cells(a, c, &t) < 0 || t.failed)
		return -ENOMEM;
	json_begin(j, NULL, '{');
	against_change_json(j, a, c);
	if (function)
		json_string(j, "function", compare_text(a->compared, function->item->what) ?: "");
	json_begin(j, "cells", '[');
	for (size_t i = 0; i < t.n_cells; i++)
		json_string(j, NULL, t.cells[i]);
	json_end(j, ']');
	json_end(j, '}');
	return 0;
}

static int lines_json(struct json *j, const struct report_against *a)
{
	const struct compare_change *lines[AGAINST_MAX];
	size_t max = MIN(a->report.o->top, AGAINST_MAX), n = against_lines(a, lines, max);
	int r = 0;

	json_begin(j, "lines", '[');
	for (size_t i = 0; i < MIN(n, max) && r >= 0; i++)
		r = line_json(j, a, lines[i]);
	json_end(j, ']');
	json_unsigned(j, "more", n - MIN(n, max) + a->n_more);
	return r;
}

int against_page_text(const struct report_against *a, char **ret)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	size_t size;
	struct json j = { .f = open_memstream(ret, &size) };
	int r;

	if (!j.f)
		return -ENOMEM;
	json_begin(&j, NULL, '{');
	json_unsigned(&j, "since", g->since);
	json_unsigned(&j, "until", g->until);
	json_unsigned(&j, "before", compare_begin(g));
	r = text_json(&j, "head", a, against_head);
	if (r >= 0)
		r = text_json(&j, "findings", a, against_findings);
	columns_json(&j);
	if (r >= 0)
		r = lines_json(&j, a);
	if (r >= 0)
		r = text_json(&j, "gaps", a, against_gaps);
	json_end(&j, '}');
	return fclose(j.f) ? -ENOMEM : r;
}
