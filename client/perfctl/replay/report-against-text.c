// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was different, for people: what is compared with what, then a line for each change, the largest
 * first. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/replay/compare-findings.h"
#include "client/perfctl/replay/report-against.h"
#include "client/perfctl/replay/report-latency.h"

/* ── The head ── */

static void print_moment(const struct report *r, FILE *f, uint64_t ns)
{
	uint64_t real = r->info->realtime_offset;
	time_t t = (time_t)((ns + real) / 1000000000);
	char text[64];
	struct tm tm;

	if (real && localtime_r(&t, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		fprintf(f, "%s.%03" PRIu64, text, (ns + real) / 1000000 % 1000);
	else
		fprintf(f, "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns / 1000 % 1000000);
}

/* Why it is not all of the time that was asked for; what is left over of a slice is no reason. */
static void print_less(const struct report_against *a, FILE *f)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	uint64_t before = g->since - compare_begin(g);

	if (MIN(a->asked, a->recorded) - before >= g->width)
		fprintf(f, " (which is %" PRIu32 " times as long: more is not compared)",
			g->n_before);
	else if (before + g->width < a->asked)
		fprintf(f, " (%.3f s are not recorded)", (double)(a->asked - a->recorded) / 1e9);
}

void against_head(const struct report_against *a, FILE *f)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	uint64_t before = g->since - compare_begin(g);

	fprintf(f, "%.3f s, from ", (double)(g->until - g->since) / 1e9);
	print_moment(&a->report, f, g->since);
	fputs(" to ", f);
	print_moment(&a->report, f, g->until);
	fprintf(f, ", compared with the %.3f s before", (double)before / 1e9);
	print_less(a, f);
	fputc('\n', f);
}

/* An event is told by how much of the time before it has, and if records of it are missing. */
static uint64_t missing(const struct compare_source *s)
{
	return s->history.missed + s->history.limited + s->history.lost;
}

static void print_missing(const struct compare_source *s, FILE *f)
{
	const struct trace_history *h = &s->history;

	if (!missing(s))
		return;
	print_text(f, s->event->name, strlen(s->event->name));
	fprintf(f, " lacks %s%" PRIu64 " of its records, maybe of the time before\n",
		h->missed_at_least ? "at least " : "", missing(s));
}

static void print_history(const struct report_against *a, const struct compare_source *s, FILE *f)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	uint64_t width, begin = compare_begin(g);
	uint32_t slices = compare_history(g, s->complete, &width);

	if (s->complete <= begin)
		return;
	print_text(f, s->event->name, strlen(s->event->name));
	if (s->complete >= g->since)
		fputs(" has complete records only from the moment itself", f);
	else
		fprintf(f, " has complete records of %.3f s before",
			(double)(g->since - s->complete) / 1e9);
	if (slices)
		fprintf(f, ": %" PRIu32 " slices of %.3f s\n", slices, (double)width / 1e9);
	else
		fputs(": not compared\n", f);
}

/* ── Lines ── */

static const char *text_of(const struct report_against *a, uint32_t name)
{
	return compare_text(a->compared, name) ?: "";
}

static void print_value(FILE *f, const struct compare_kind *kind, double v)
{
	double shown = kind->is_time ? v / 1e6 : v;

	if (shown > 0 && shown < 0.1)
		fprintf(f, "%.3f", shown);
	else
		fprintf(f, "%.1f", shown);
}

static const char *unit_of(const struct compare_kind *kind)
{
	return kind->is_longest ? "ms" : kind->is_time ? "ms/s" : "/s";
}

static void value_cell(struct table *t, const struct compare_kind *kind, double v)
{
	char text[64];
	FILE *f = fmemopen(text, sizeof(text), "w");

	if (!f) {
		t->failed = true;
		return;
	}
	print_value(f, kind, v);
	fclose(f);
	table_cell(t, "%s %s", text, unit_of(kind));
}

static void range_cell(struct table *t, const struct compare_kind *kind,
		       const struct compare_change *c)
{
	char text[96];
	FILE *f;

	if (c->is_new) {
		table_cell(t, "-");
		return;
	}
	f = fmemopen(text, sizeof(text), "w");
	if (!f) {
		t->failed = true;
		return;
	}
	print_value(f, kind, c->min);
	fputs(" to ", f);
	print_value(f, kind, c->max);
	fclose(f);
	table_cell(t, "%s", text);
}

static void factor_cell(struct table *t, const struct compare_change *c)
{
	if (c->is_new)
		table_cell(t, "new");
	else if (c->median <= 0)
		table_cell(t, "-");
	else if (c->now / c->median < 100)
		table_cell(t, "x%.1f", c->now / c->median);
	else
		table_cell(t, "x%.0f", c->now / c->median);
}

static void unusual_cell(struct table *t, const struct compare_change *c)
{
	if (c->is_new)
		table_cell(t, "never in %" PRIu32 " slices", c->slices);
	else if (c->distance < 1e6)
		table_cell(t, "beyond all %" PRIu32 " slices, %.0fx their range", c->slices,
			   c->distance);
	else
		table_cell(t, "beyond all %" PRIu32 " slices", c->slices);
}

static void print_longest(FILE *f, const struct report_against *a, const struct compare_change *c)
{
	const struct compare_change *longest = against_longest(a, c);

	if (longest)
		fprintf(f, ", the longest %.1f ms instead of %.1f", longest->now / 1e6,
			longest->max / 1e6);
}

static void print_function(FILE *f, const struct report_against *a, const struct compare_change *c)
{
	const struct compare_change *function = against_function(a, c);

	if (function)
		fprintf(f, ", most of it in %s", text_of(a, function->item->what));
}

/* "true (of make): processes begun" */
static void print_what(FILE *f, const struct report_against *a, const struct compare_change *c)
{
	const struct compare_item *item = c->item;
	const char *comm = text_of(a, item->comm);
	const char *parent = item->comm == COMPARE_NO_NAME
				     ? NULL
				     : compare_records_parent(a->records, item->comm);
	const char *text = against_words[item->class].text, *what = strstr(text, "%s");
	uint32_t cpu = item->class == COMPARE_EVENT ? against_cpu(a, c) : UINT32_MAX;

	fputs(comm, f);
	if (parent && strcmp(parent, comm) != 0)
		fprintf(f, " (of %s)", parent);
	fputs(*comm ? ": " : "", f);
	if (what)
		fprintf(f, "%.*s%s%s", (int)(what - text), text, text_of(a, item->what), what + 2);
	else
		fputs(text, f);
	if (cpu != UINT32_MAX)
		fprintf(f, " on CPU %" PRIu32, cpu);
	print_longest(f, a, c);
	print_function(f, a, c);
}

static int what_cell(struct table *t, const struct report_against *a,
		     const struct compare_change *c)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	print_what(f, a, c);
	if (fclose(f))
		return -ENOMEM;
	table_cell(t, "%s", text);
	return 0;
}

const struct column against_columns[AGAINST_COLUMNS] = {
	{ "NOW", true },    { "BEFORE", true },	  { "RANGE", true },
	{ "FACTOR", true }, { "UNUSUAL", false }, { "WHAT", false },
};

int against_cells(const struct report_against *a, const struct compare_change *c, struct table *t)
{
	const struct compare_kind *kind = compare_kind(c->item->class);

	value_cell(t, kind, c->now);
	value_cell(t, kind, c->median);
	range_cell(t, kind, c);
	factor_cell(t, c);
	unusual_cell(t, c);
	return what_cell(t, a, c);
}

/* *ret: how many lines there are, with those beyond --top. */
static int print_changes(const struct report_against *a, size_t *ret)
{
	const struct compare_change *lines[AGAINST_MAX];
	_cleanup_(table_done) struct table t = {
		.columns = against_columns,
		.n_columns = AGAINST_COLUMNS,
		.width = a->report.width,
	};
	size_t max = MIN(a->report.o->top, AGAINST_MAX), n = against_lines(a, lines, max);

	for (size_t i = 0; i < MIN(n, max); i++)
		if (against_cells(a, lines[i], &t) < 0)
			return -ENOMEM;
	if (n && table_print(&t, stdout) < 0)
		return -ENOMEM;
	if (n > max || a->n_more)
		printf("(%zu more)\n", n - MIN(n, max) + a->n_more);
	*ret = n + a->n_more;
	return 0;
}

/* First the threads that kept others waiting, then what commands do. */
void against_findings(const struct report_against *a, FILE *f)
{
	size_t n = MIN(a->n_findings, a->report.o->top);

	for (size_t i = 0; i < n; i++)
		report_finding_text(f, a->findings[i], i + 1, compare_grid_of(a->compared)->until);
	if (n < a->n_findings)
		fprintf(f, "(%zu more)\n", a->n_findings - n);
}

void against_gaps(const struct report_against *a, FILE *f)
{
	uint64_t begin = compare_begin(compare_grid_of(a->compared));
	size_t n, gaps = 0;
	const struct compare_source *sources = compare_records_sources(a->records, &n);

	if (compare_records_lack_time(a->records))
		fprintf(f,
			"Who kept whom waiting is not compared: that takes %d times as long before\n",
			COMPARE_FINDINGS_MIN);
	for (size_t i = 0; i < n; i++) {
		const struct compare_source *s = &sources[i];

		if ((!s->n_cpus && !s->complete) || (s->complete <= begin && !missing(s)) ||
		    gaps++ >= a->report.o->top)
			continue;
		print_history(a, s, f);
		print_missing(s, f);
	}
	if (gaps > a->report.o->top)
		fprintf(f, "(%zu more events lack some)\n", gaps - a->report.o->top);
}

/* The lines come first: they are why people look. */
int report_against_text(const struct report_against *a)
{
	size_t n;

	against_head(a, stdout);
	against_findings(a, stdout);
	if (print_changes(a, &n) < 0)
		return -ENOMEM;
	if (!n && !a->n_findings)
		puts("nothing unusual");
	against_gaps(a, stdout);
	return 0;
}
