// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl top: prints the busiest events, or the busiest functions of some, every few seconds. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/rates.h"
#include "client/perfctl/replay/report.h"
#include "proto/clock.h"

static const struct column columns[] = {
	{ "RECORDS/S", true }, { "MB/S", true },   { "MISSED/S", true }, { "LIMITED/S", true },
	{ "RECORDS", true },   { "STATE", false }, { "NAME", false },	 { "EVENT", false },
};

struct top {
	const struct call *call;
	struct perfpersist *p;
	const char *ns;
	char *functions_of;	 /* these events; NULL: a table of events */
	uint64_t interval, left; /* left 0: no end */
	struct perfpersist_info *before;
	size_t n_before;
	uint64_t looked; /* when `before` was taken */
};

struct line {
	const struct perfpersist_info *info;
	struct rates rates;
};

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->rates.megabytes != y->rates.megabytes)
		return x->rates.megabytes < y->rates.megabytes ? 1 : -1;
	return (x->info->id > y->info->id) - (x->info->id < y->info->id);
}

/* Lists are sorted by id. */
static const struct perfpersist_info *find(const struct perfpersist_info *infos, size_t n,
					   uint64_t id)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (infos[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && infos[low].id == id ? &infos[low] : NULL;
}

static void fill(const struct top *t, const struct perfpersist_info *infos, size_t n,
		 double seconds, struct line *lines)
{
	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_info *old = find(t->before, t->n_before, infos[i].id);
		struct counts now = counts_of(&infos[i]), before = {}, diff;

		if (old)
			before = counts_of(old);
		diff = counts_since(&now, &before);
		lines[i] = (struct line){ &infos[i], rates_of(&diff, seconds) };
	}
	qsort(lines, n, sizeof(*lines), compare_lines);
}

/* How many lines for events the terminal has; SIZE_MAX: stdout is no terminal. */
static size_t room(void)
{
	struct winsize w = terminal();

	return w.ws_row < 4 ? SIZE_MAX : (size_t)w.ws_row - 3;
}

static int print_lines(const struct line *lines, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n && i < room(); i++) {
		const struct perfpersist_info *info = lines[i].info;
		const struct rates *r = &lines[i].rates;

		table_cell(&t, "%s", format_rate(r->records).s);
		table_cell(&t, "%.3f", r->megabytes);
		table_cell(&t, "%s", format_missed_rate(r).s);
		table_cell(&t, "%s", format_rate(r->limited).s);
		table_cell(&t, "%" PRIu64, info->records);
		table_cell(&t, "%s", info_state(info));
		table_cell(&t, "%s/%s", info->ns, info->name);
		table_cell(&t, "%s", info->event);
	}
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the events: out of memory");
		return EXIT_FAILED;
	}
	if (!isatty(STDOUT_FILENO))
		putchar('\n');
	return EXIT_OK;
}

static void print_json(const struct line *lines, size_t n, double seconds)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_info *info = lines[i].info;
		const struct rates *r = &lines[i].rates;

		json_begin(&j, NULL, '{');
		json_string(&j, "namespace", info->ns);
		json_string(&j, "name", info->name);
		json_unsigned(&j, "id", info->id);
		json_unsigned(&j, "records_per_second", (uint64_t)r->records);
		json_unsigned(&j, "bytes_per_second", (uint64_t)(r->megabytes * 1e6));
		if (r->missed_unknown)
			json_null(&j, "missed_per_second");
		else
			json_unsigned(&j, "missed_per_second", (uint64_t)r->missed);
		json_bool(&j, "missed_at_least", r->missed_at_least);
		json_unsigned(&j, "limited_per_second", (uint64_t)r->limited);
		json_unsigned(&j, "interval_ns", (uint64_t)(seconds * 1e9));
		json_end(&j, '}');
	}
	json_end(&j, ']');
	putchar('\n');
}

static int print(const struct top *t, const struct perfpersist_info *infos, size_t n,
		 double seconds)
{
	_cleanup_free_ struct line *lines = calloc(n + 1, sizeof(*lines));
	int r = EXIT_OK;

	if (!lines) {
		complain("cannot print the events: out of memory");
		return EXIT_FAILED;
	}
	fill(t, infos, n, seconds, lines);
	if (t->call->json)
		print_json(lines, n, seconds);
	else
		r = print_lines(lines, n);
	fflush(stdout);
	return r;
}

/* The first call only counts; each later call prints the rates since the call before. */
static int look_at_events(struct top *t)
{
	struct perfpersist_info *infos = NULL;
	uint64_t now;
	size_t n = 0;
	int r = perfpersist_list(t->p, t->ns, &infos, &n);

	if (r < 0)
		return suggest_name(t->p, r, t->ns ?: "", NULL);
	now = pp_clock_ns(CLOCK_MONOTONIC);
	r = t->looked ? print(t, infos, n, (now - t->looked) / 1e9) : EXIT_OK;
	free(t->before);
	t->before = infos;
	t->n_before = n;
	t->looked = now;
	return r;
}

/* Counts the records since the call before. */
static int look_at_functions(struct top *t)
{
	struct call call = *t->call;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	int r;

	call.operands = &t->functions_of;
	call.n_operands = 1;
	r = t->looked ? report_functions(&call, t->looked) : EXIT_OK;

	t->looked = now;
	return r;
}

static int look(struct top *t)
{
	return t->functions_of ? look_at_functions(t) : look_at_events(t);
}

static int top(struct top *t)
{
	int r = look(t);

	signals_catch();
	while (!r && !signals_caught() && !ferror(stdout)) {
		signals_wait(t->interval, -1);
		if (signals_caught())
			break;
		r = look(t);
		if (t->left && --t->left == 0)
			break;
	}
	free(t->before);
	return r;
}

static int take_event(const struct given *g)
{
	struct top *t = g->to;

	free(TAKE_PTR(t->functions_of));
	return parse_persistent(g->value, &t->functions_of) < 0 || !t->functions_of
		       ? refuse(g, PERSISTENT_HINT)
		       : EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'e', "event", "EVENT",
	  "persistent/NAMESPACE/ or persistent/NAMESPACE/NAME/: show the functions that these events' "
	  "records are of, as perf top",
	  .take = take_event },
	{ 'd', NULL, "SECONDS", "the time between two updates; default: 2",
	  TAKE_VALUE(struct top, interval, parse_seconds, "not a number of seconds") },
	{ 'n', NULL, "N", "end after N updates",
	  TAKE_NUMBER(struct top, left, "not a number above 0"), .min = 1 },
	{},
};

static int run_top(struct call *call, struct top *t)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int r;

	if (!options_read(call, t))
		return call->code;
	if (t->functions_of && call->n_operands > 0)
		return bad_usage(call, "-e names the events already");
	t->ns = call->operands[0];
	if (t->functions_of)
		return top(t);
	r = call_connect(call, &p);
	if (r)
		return r;
	t->p = p;
	return top(t);
}

static int run(struct call *call)
{
	struct top t = { .call = call, .interval = 2000000000 };
	int r = run_top(call, &t);

	free(t.functions_of);
	return r;
}

const struct verb verb_top = {
	.name = "top",
	.synopsis = "[NAMESPACE | -e EVENT] [-d SECONDS] [-n N]",
	.summary = "show the busiest events, by the bytes they write, or their functions",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAMESPACE,
	.one_operand = true,
	.help = "--json prints a line each time.\n"
		"\n"
		"Examples:\n"
		"  perfctl top\n"
		"  perfctl top web -d 0.5\n"
		"  perfctl top -e persistent/sampling/cpu/\n",
};
