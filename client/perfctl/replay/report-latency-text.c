// SPDX-License-Identifier: LGPL-2.1-or-later
/* Latency reports for people: for each kind a table of who and what, then the longest intervals, and
 * those that did not end. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/replay/report-latency.h"

static void ms_cell(struct table *t, uint64_t ns)
{
	table_cell(t, "%.3f", (double)ns / 1e6);
}

static void row_cells(struct table *t, const struct latency_words *w, const struct latency_row *row)
{
	table_cell(t, "%zu", row->n);
	ms_cell(t, row->sum);
	ms_cell(t, latency_percentile(row, 500));
	ms_cell(t, latency_percentile(row, 900));
	ms_cell(t, latency_percentile(row, 990));
	ms_cell(t, latency_percentile(row, 999));
	ms_cell(t, row->all[row->n - 1]);
	table_cell(t, "%s", row->label);
	if (w->of_processes) {
		table_cell(t, "%" PRIu32, row->pid);
		table_cell(t, "%s", row->comm);
	}
}

static int print_rows(const struct report *r, const struct latency_words *w,
		      const struct latency_sums *s)
{
	const struct column columns[] = {
		{ "COUNT", true }, { "SUM", true },	 { "P50", true }, { "P90", true },
		{ "P99", true },   { "P99.9", true },	 { "MAX", true }, { w->label, false },
		{ "PID", true },   { "COMMAND", false },
	};
	_cleanup_(table_done) struct table t = {
		.columns = columns,
		.n_columns = w->of_processes ? ARRAY_SIZE(columns) : ARRAY_SIZE(columns) - 2,
		.width = r->width,
	};
	size_t n = MIN(s->n_rows, r->o->top);

	for (size_t i = 0; i < n; i++)
		row_cells(&t, w, &s->rows[i]);
	if (table_print(&t, stdout) < 0)
		return -ENOMEM;
	if (n < s->n_rows)
		printf("(%zu more)\n", s->n_rows - n);
	return 0;
}

/* What the table above does not have. */
static void print_counts(const struct latency_sums *s)
{
	printf("%" PRIu64 " in all, %.3f ms", s->n, (double)s->sum / 1e6);
	if (s->begun_before || s->missing || s->n_open)
		printf("; not counted: %" PRIu64 " began before the records, %" PRIu64
		       " had not ended, %" PRIu64 " have missing records",
		       s->begun_before, s->n_open, s->missing);
	putchar('\n');
}

/* On one line, the innermost function first, as `perf sched timehist` prints chains. */
static void print_chain(const struct flame_node *leaf)
{
	if (!leaf || !leaf->frame)
		return;
	for (const struct flame_node *n = leaf; n && n->frame; n = n->parent) {
		fputs(n == leaf ? "              " : " <- ", stdout);
		print_text(stdout, n->frame->symbol, strlen(n->frame->symbol));
	}
	putchar('\n');
}

static void print_who(const struct latency_who *who)
{
	const char *comm = *who->comm ? who->comm : "?";

	print_text(stdout, comm, strlen(comm));
	printf(":%" PRIu32, who->tid);
}

static void print_moment(uint64_t time)
{
	printf("%" PRIu64 ".%06" PRIu64, time / 1000000000, time / 1000 % 1000000);
}

static void print_waker(const struct latency_words *w, const struct latency_interval *one)
{
	if (!one->was_woken)
		return;
	fputs(w == &latency_words[LATENCY_WAKEUPS] ? " by " : ", woken by ", stdout);
	print_who(&one->waker);
	if (one->woken > one->begin && one->woken < one->end)
		printf(" %.3f ms before it ran", (double)(one->end - one->woken) / 1e6);
}

static void print_interval(const struct latency_words *w, const struct latency_interval *one,
			   bool is_open)
{
	printf("%12.3f  ", (double)(one->end - one->begin) / 1e6);
	print_moment(one->begin);
	if (is_open) {
		fputs("  ", stdout);
	} else {
		fputs(" to ", stdout);
		print_moment(one->end);
		printf("  [%03" PRIu32 "]  ", one->cpu);
	}
	print_who(&one->who);
	fputs("  ", stdout);
	print_text(stdout, one->label, strlen(one->label));
	print_waker(w, one);
	putchar('\n');
	print_chain(one->chain);
}

static void print_list(const struct latency_words *w, const char *title,
		       const struct latency_list *list, uint64_t all, bool is_open)
{
	if (!list->n)
		return;
	printf("%s\n", title);
	for (size_t i = 0; i < list->n; i++)
		print_interval(w, &list->all[i], is_open);
	if (is_open && list->n < all)
		printf("(%" PRIu64 " more)\n", all - list->n);
}

static void print_places(const struct report *r, const struct latency_sums *s)
{
	size_t n = MIN(s->n_places, r->o->top);

	if (!n)
		return;
	puts("By call chain: ms in all, count, longest");
	for (size_t i = 0; i < n; i++) {
		const struct latency_place *p = &s->places[i];

		printf("%12.3f  %" PRIu64 "  %.3f\n", (double)p->sum / 1e6, p->n,
		       (double)p->max / 1e6);
		print_chain(p->chain);
	}
	if (n < s->n_places)
		printf("(%zu more)\n", s->n_places - n);
}

/* perf's own files are complete, except those of --overwrite. */
static void print_complete(const struct report *r, const struct trace_history *h)
{
	if (h->known && h->from > r->a->first) {
		fputs("Complete from ", stdout);
		print_moment(h->from);
		puts(" on: what some of these events recorded before is not there");
	} else if (!h->known && !strncmp(r->info->cmdline ?: "", "perfctl ", 8)) {
		puts("Complete from an unknown time on: if buffers had been overwritten before, "
		     "intervals of the first seconds may be too long");
	}
	if (h->missed || h->limited)
		printf("%s%" PRIu64 " records were missed and %" PRIu64 " dropped by a rate limit "
		       "since the events were created: some intervals may be too long\n",
		       h->missed_at_least ? "At least " : "", h->missed, h->limited);
}

int report_latency_text(const struct report *r, const struct latency *l, uint32_t kinds,
			const struct trace_history *histories)
{
	if (report_head(r) < 0)
		return -ENOMEM;
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct latency_words *w = &latency_words[kind];
		const struct latency_sums *s = latency_sums(l, kind);

		if (!(kinds >> kind & 1))
			continue;
		printf("\n%s; times in ms\n", w->title);
		print_complete(r, &histories[kind]);
		if (s->n_rows && print_rows(r, w, s) < 0)
			return -ENOMEM;
		print_counts(s);
		print_places(r, s);
		print_list(w, "The longest", &s->worst, s->n, false);
		print_list(w, "Not ended by the last record", &s->open, s->n_open, true);
	}
	return 0;
}
