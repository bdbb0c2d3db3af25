// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The report for people: the input, counts of events, functions; report-processes.c has the processes.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/replay/report.h"

#define CPU_COLUMNS 8 /* more CPUs have no columns */

double report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

char *report_cpus(const uint64_t *bits, size_t n_words)
{
	char *text = NULL;
	size_t size, n = n_words * 64;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		while (end < n && bits[end / 64] >> end % 64 & 1)
			end++;
		fprintf(f, "%s%zu", ftell(f) ? "," : "", i);
		if (end - i > 1)
			fprintf(f, "-%zu", end - 1);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ── The input ── */

static void print_text_line(const char *label, const char *text)
{
	printf("%-10s", label);
	print_text(stdout, text, strlen(text));
	putchar('\n');
}

static void print_machine(const struct trace_info *info)
{
	const char *parts[] = { info->hostname, info->release, info->arch, info->cpudesc };
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i] || !*parts[i])
			continue;
		fputs(any ? ", " : "Machine   ", stdout);
		print_text(stdout, parts[i], strlen(parts[i]));
		any = true;
	}
	if (any && info->nr_cpus_online)
		printf(", %u of %u CPUs online", info->nr_cpus_online, info->nr_cpus_avail);
	if (any)
		putchar('\n');
}

static void print_moment(uint64_t ns)
{
	time_t t = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		printf("%s.%06" PRIu64, text, ns / 1000 % 1000000);
}

static void print_time(const struct report *r)
{
	uint64_t first = r->a->first, last = r->a->last, real = r->info->realtime_offset;

	if (!r->a->samples)
		return;
	printf("%-10s%.6f s, ", "Time", (double)(last - first) / 1e9);
	if (real) {
		print_moment(first + real);
		fputs(" to ", stdout);
		print_moment(last + real);
		fputs(", monotonic ", stdout);
	}
	printf("%" PRIu64 ".%06" PRIu64 " to %" PRIu64 ".%06" PRIu64 "\n", first / 1000000000,
	       first / 1000 % 1000000, last / 1000000000, last / 1000 % 1000000);
}

int report_head(const struct report *r)
{
	const struct aggregate *a = r->a;
	uint64_t bits[AGGREGATE_CPUS / 64] = {};
	_cleanup_free_ char *cpus = NULL;

	for (size_t i = 0; i < a->n_events; i++)
		for (uint32_t c = 0; c < a->n_cpus; c++)
			if (cpu_counts_get(&a->events[i].cpus, c))
				bits[c / 64] |= UINT64_C(1) << c % 64;
	cpus = report_cpus(bits, ARRAY_SIZE(bits));
	if (!cpus)
		return -ENOMEM;
	print_text_line("Trace", r->in->what);
	print_machine(r->info);
	print_time(r);
	printf("%-10s%" PRIu64 "%s%s\n", "Records", a->samples, *cpus ? ", on CPUs " : "", cpus);
	if (a->lost)
		printf("%-10s%" PRIu64 " records are known to be missing\n", "Lost", a->lost);
	if (a->no_cpu)
		printf("%-10s%" PRIu64 " records have no CPU\n", "", a->no_cpu);
	if (a->nameless)
		printf("%-10s%" PRIu64 " records are of processes without a name in the trace\n",
		       "Nameless", a->nameless);
	return 0;
}

/* ── Events ── */

static int more_samples(const void *left, const void *right)
{
	const struct event_sum *l = *(const struct event_sum *const *)left;
	const struct event_sum *r = *(const struct event_sum *const *)right;

	if (l->weight.samples != r->weight.samples)
		return l->weight.samples > r->weight.samples ? -1 : 1;
	return l < r ? -1 : l > r;
}

/* The CPUs that get a column; none if there are too many. */
static size_t cpu_columns(const struct aggregate *a, uint32_t *cpus)
{
	size_t n = 0;

	for (uint32_t c = 0; c < a->n_cpus; c++) {
		bool any = false;

		for (size_t i = 0; i < a->n_events && !any; i++)
			any = cpu_counts_get(&a->events[i].cpus, c) != 0;
		if (any && n == CPU_COLUMNS)
			return 0;
		if (any)
			cpus[n++] = c;
	}
	return n;
}

/* Records a second: on each CPU from when on it has all of them. < 0: unknown. */
static double rate_of(const struct report *r, const struct event_sum *e)
{
	struct trace_history h = trace_history(r->in->trace, e->event->index);
	uint64_t all = r->a->last - r->a->first;
	double rate = 0;

	if (!h.n_cpus)
		return all ? (double)e->weight.samples * 1e9 / (double)all : -1;
	for (size_t i = 0; i < h.n_cpus; i++) {
		uint64_t from = MAX(h.cpus[i].from, r->a->first), to = MIN(h.to, r->a->last);
		uint64_t n = cpu_counts_get(&e->cpus, h.cpus[i].cpu);

		if (n && to <= from)
			return -1;
		rate += n ? (double)n * 1e9 / (double)(to - from) : 0;
	}
	return rate;
}

/* Unless it has all of the time (but for a thousandth) and all records. */
static bool is_lacking(const struct report *r, const struct trace_history *h)
{
	uint64_t all = r->a->last - r->a->first, from = MAX(h->from, r->a->first),
		 to = MIN(h->to, r->a->last);
	bool has_time = to > from && to - from >= all - all / 1000;

	return h->known && (!has_time || h->missed || h->lost || h->limited);
}

static void print_missed(const struct trace_history *h, const char *of)
{
	if (h->missed + h->lost)
		printf("; %smissed %s%" PRIu64, of, h->missed_at_least ? "at least " : "",
		       h->missed + h->lost);
	if (h->limited)
		printf("; %" PRIu64 " dropped by %s", h->limited,
		       *of ? "rate limits" : "its rate limit");
}

/* For the n events that share it. */
static void print_history(const struct report *r, size_t first, size_t n,
			  const struct trace_history *h)
{
	uint64_t all = r->a->last - r->a->first, from = MAX(h->from, r->a->first),
		 to = MIN(h->to, r->a->last);
	const char *name = r->a->events[first].event->name;

	print_text(stdout, name, strlen(name));
	if (n > 1)
		printf(" and %zu more", n - 1);
	if (to > from)
		printf(": complete for %.3f of %.3f s, from %.3f s on", (double)(to - from) / 1e9,
		       (double)all / 1e9, (double)(from - r->a->first) / 1e9);
	else
		printf(": at no time complete");
	print_missed(h, "");
	putchar('\n');
}

/* A file can have one for each of any number of events. */
static void print_histories(const struct report *r)
{
	struct trace_history sum = {};
	size_t n = 0;

	for (size_t i = 0, end; i < r->a->n_events; i = end) {
		struct trace_history h = trace_history(r->in->trace, i);

		end = i + trace_history_events(r->in->trace, i);
		if (!is_lacking(r, &h))
			continue;
		sum.missed += h.missed + h.lost;
		sum.limited += h.limited;
		sum.missed_at_least |= h.missed_at_least;
		if (n++ < r->o->top)
			print_history(r, i, end - i, &h);
	}
	if (n <= r->o->top)
		return;
	printf("(%zu more", n - r->o->top);
	print_missed(&sum, "all together ");
	puts(")");
}

static void rate_cell(struct table *t, double rate)
{
	if (rate >= 0)
		table_cell(t, "%.1f", rate);
	else
		table_cell(t, "-");
}

static void event_cells(struct table *t, const struct report *r, const struct event_sum *e,
			const uint32_t *cpus, size_t n_cpus)
{
	table_cell(t, "%" PRIu64, e->weight.samples);
	rate_cell(t, rate_of(r, e));
	for (size_t i = 0; i < n_cpus; i++)
		table_cell(t, "%" PRIu64, cpu_counts_get(&e->cpus, cpus[i]));
	table_cell(t, "%s", e->event->name);
}

static int print_events(const struct report *r, const struct event_sum **events)
{
	struct column columns[CPU_COLUMNS + 3] = { { "RECORDS", true }, { "PER SECOND", true } };
	_cleanup_(table_done) struct table t = { .columns = columns, .width = r->width };
	char titles[CPU_COLUMNS][24];
	uint32_t cpus[CPU_COLUMNS];
	size_t n_cpus = cpu_columns(r->a, cpus), shown = 0;

	for (size_t i = 0; i < n_cpus; i++) {
		snprintf(titles[i], sizeof(titles[i]), "CPU %u", cpus[i]);
		columns[i + 2] = (struct column){ titles[i], true };
	}
	columns[n_cpus + 2] = (struct column){ "EVENT", false };
	t.n_columns = n_cpus + 3;
	for (; shown < r->a->n_events && shown < r->o->top; shown++) {
		if (!events[shown]->weight.samples)
			break;
		event_cells(&t, r, events[shown], cpus, n_cpus);
	}
	puts("\nEvents");
	if (table_print(&t, stdout) < 0)
		return -ENOMEM;
	if (shown < r->a->n_events)
		printf("(%zu more: %s)\n", r->a->n_events - shown,
		       events[shown]->weight.samples ? "--top shows more" : "no records");
	print_histories(r);
	return 0;
}

/* ── Functions ── */

/* A tracepoint is always hit in the same function: without call chains, a table of functions is
 * printed only on request. */
static bool has_functions(const struct report *r, const struct event_sum *e)
{
	if (e->event->format && !e->has_chains && !r->o->sorted)
		return false;
	for (const struct flame_node *n = flame_next(e->root); n; n = flame_next(n))
		if (n->frame)
			return true;
	return false;
}

static void hot_cells(struct table *t, const struct report *r, const struct event_sum *e,
		      const struct hot_row *row)
{
	const struct frame *f = row->frame;

	if (r->o->children)
		table_cell(t, "%.2f%%", report_percent(row->total.period, e->weight.period));
	table_cell(t, "%.2f%%", report_percent(row->self.period, e->weight.period));
	table_cell(t, "%" PRIu64, row->self.samples);
	if (r->o->sort & SORT_PID)
		table_cell(t, "%" PRId32, (int32_t)row->pid);
	if (r->o->sort & SORT_TID)
		table_cell(t, "%" PRId32, (int32_t)row->tid);
	if (r->o->sort & SORT_COMM)
		table_cell(t, "%s", row->comm);
	if (r->o->sort & SORT_DSO)
		table_cell(t, "%s", f ? f->dso : "-");
	if (r->o->sort & SORT_SYMBOL)
		table_cell(t, "%s%s", !f ? "" : f->kernel ? "[k] " : "[.] ", f ? f->symbol : "-");
}

static size_t hot_columns(const struct report_options *o, struct column *columns)
{
	size_t n = 0;

	if (o->children)
		columns[n++] = (struct column){ "CHILDREN", true };
	columns[n++] = (struct column){ o->children ? "SELF" : "OVERHEAD", true };
	columns[n++] = (struct column){ "SAMPLES", true };
	if (o->sort & SORT_PID)
		columns[n++] = (struct column){ "PID", true };
	if (o->sort & SORT_TID)
		columns[n++] = (struct column){ "TID", true };
	if (o->sort & SORT_COMM)
		columns[n++] = (struct column){ "COMMAND", false };
	if (o->sort & SORT_DSO)
		columns[n++] = (struct column){ "DSO", false };
	if (o->sort & SORT_SYMBOL)
		columns[n++] = (struct column){ "SYMBOL", false };
	return n;
}

static void print_hot_title(const struct event_sum *e)
{
	fputs("\nSamples of ", stdout);
	print_text(stdout, e->event->name, strlen(e->event->name));
	printf(": %" PRIu64 ", event count (approx.): %" PRIu64 "\n", e->weight.samples,
	       e->weight.period);
}

static int print_hot(const struct report *r, const struct event_sum *e)
{
	struct column columns[8];
	_cleanup_(table_done) struct table t = { .columns = columns, .width = r->width };
	_cleanup_(hot_done) struct hot hot = {};
	size_t shown = 0;

	if (hot_new(e, r->o->sort, r->o->children, &hot) < 0)
		return -ENOMEM;
	t.n_columns = hot_columns(r->o, columns);
	for (; shown < hot.n && shown < r->o->top; shown++) {
		const struct hot_row *row = &hot.rows[shown];
		uint64_t weight = r->o->children ? row->total.period : row->self.period;

		if (report_percent(weight, e->weight.period) < MAX(r->o->percent_limit, 0))
			break;
		hot_cells(&t, r, e, row);
	}
	print_hot_title(e);
	if (table_print(&t, stdout) < 0)
		return -ENOMEM;
	if (shown < hot.n)
		printf("(%zu more)\n", hot.n - shown);
	return r->o->graph && e->has_chains ? report_chains(r, e) : 0;
}

/* ── All of it ── */

/* The busiest event first; for free(3). NULL: no memory. */
static const struct event_sum **sort_events(const struct aggregate *a)
{
	const struct event_sum **events = calloc(a->n_events + 1, sizeof(*events));

	for (size_t i = 0; events && i < a->n_events; i++)
		events[i] = &a->events[i];
	if (events)
		qsort(events, a->n_events, sizeof(*events), more_samples);
	return events;
}

/* How many lines of functions each of n tables gets on the terminal, of which each has four more. */
static size_t lines_of(size_t n)
{
	size_t rows = terminal().ws_row;

	return !n || rows < 8 * n ? 4 : rows / n - 4;
}

static int report_live(const struct report *r)
{
	_cleanup_free_ const struct event_sum **events = sort_events(r->a);
	struct report_options o = *r->o;
	struct report each = *r;
	size_t n = 0;

	if (!events)
		return -ENOMEM;
	while (n < r->a->n_events && events[n]->weight.samples)
		n++;
	if (r->width) {
		fputs("\033[H\033[J", stdout);
		o.top = lines_of(n);
	}
	each.o = &o;
	for (size_t i = 0; i < n; i++)
		if (print_hot(&each, events[i]) < 0)
			return -ENOMEM;
	if (!n)
		printf("\nNo records in %s since the last look\n", r->in->what);
	return 0;
}

int report_text(const struct report *r)
{
	_cleanup_free_ const struct event_sum **events = NULL;

	if (r->o->live)
		return report_live(r);
	if (report_head(r) < 0)
		return -ENOMEM;
	if (!r->a->samples)
		return 0;
	events = sort_events(r->a);
	if (!events)
		return -ENOMEM;
	if (print_events(r, events) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < r->a->n_events; i++)
		if (has_functions(r, events[i]) && print_hot(r, events[i]) < 0)
			return -ENOMEM;
	return report_processes(r);
}
