// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl report: sums up records, for the terminal, or as a file that other tools show.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/events/selection.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/pictures/folded.h"
#include "client/perfctl/replay/report-latency.h"
#include "client/perfctl/replay/report-picture.h"
#include "client/perfctl/trace/symbols.h"

/* ── The command line ── */

static int take_sort(const struct given *g)
{
	static const struct {
		const char *name;
		unsigned key;
	} keys[] = { { "comm", SORT_COMM },  { "dso", SORT_DSO }, { "symbol", SORT_SYMBOL },
		     { "sym", SORT_SYMBOL }, { "pid", SORT_PID }, { "tid", SORT_TID } };
	struct report_options *o = g->to;
	unsigned sort = 0;

	for (const char *word = g->value; word; word = strchr(word, ',')) {
		unsigned key = 0;
		size_t len;

		word += *word == ',';
		len = strcspn(word, ",");
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (strlen(keys[i].name) == len && !strncmp(keys[i].name, word, len))
				key = keys[i].key;
		if (!key)
			return bad_usage(g->call, "--sort %.*s: not comm, dso, symbol, pid or tid",
					 (int)len, word);
		sort |= key;
	}
	o->sort = sort;
	o->sorted = true;
	return EXIT_OK;
}

static int take_no_children(const struct given *g)
{
	*(bool *)g->to = false;
	return EXIT_OK;
}

/* 0 … 100 */
static bool parse_percent(const char *text, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= 100))
		return false;
	*ret = v;
	return true;
}

static int take_percent(const struct given *g)
{
	return parse_percent(g->value, g->to) ? EXIT_OK : refuse(g, NULL);
}

/* perf's list, as far as it applies here: "graph,0.5,caller". */
static int take_graph(const struct given *g)
{
	struct report_options *o = g->to;
	char list[64], *rest = list, *word;

	if (snprintf(list, sizeof(list), "%s", g->value ?: "caller") >= (int)sizeof(list))
		return refuse(g, NULL);
	o->graph = GRAPH_CALLER;
	while ((word = strsep(&rest, ",")))
		if (!strcmp(word, "callee"))
			o->graph = GRAPH_CALLEE;
		else if (!strcmp(word, "none"))
			o->graph = GRAPH_NONE;
		else if (strcmp(word, "caller") != 0 && strcmp(word, "graph") != 0 &&
			 !parse_percent(word, &o->chain_limit))
			return refuse(g, NULL);
	return EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'i', "input", "FILE", "read this file", TAKE_TEXT(struct report_options, file),
	  .completes = COMPLETE_FILE },
	{ 0, "sort", "KEYS", "group functions by these: comm, dso, symbol, pid, tid",
	  .take = take_sort, .completes = COMPLETE_WORDS, .words = "comm dso symbol pid tid" },
	{ 0, "children", NULL, "add the samples of called functions to those of the caller",
	  TAKE_FLAG(struct report_options, children) },
	{ 0, "no-children", NULL, "do not add them; the default", .take = take_no_children,
	  .to = offsetof(struct report_options, children) },
	{ 'g', "call-graph", "[caller|callee]",
	  "also print call chains: callers first, or from the sampled function upwards; or as in perf "
	  "graph,0.5,callee: with those above 0.5 percent",
	  .take = take_graph,
	  .refusal = "not a list of caller or callee, graph, none and a number of percent",
	  .completes = COMPLETE_WORDS, .words = "caller callee graph none", .next_word = true },
	{ 0, "percent-limit", "N", "leave out lines below N percent", .take = take_percent,
	  .to = offsetof(struct report_options, percent_limit),
	  .refusal = "not a number from 0 to 100" },
	{ 0, "max-stack", "N", "use at most the N innermost functions of a chain",
	  TAKE_NUMBER(struct report_options, max_stack, "not a number from 1 to 127"), .min = 1,
	  .max = 127 },
	{ 0, "top", "N", "print N lines of each table; default: 20",
	  TAKE_NUMBER(struct report_options, top, "not a number from 1 to 1000000"), .min = 1,
	  .max = 1000000 },
	{},
};

static const struct verb_option instead_options[] = {
	{ 0, "folded", "[FILE]", "write stacks as lines, for flame graph tools; default: stdout",
	  TAKE_TEXT(struct report_options, folded), .if_none = "-", .completes = COMPLETE_FILE },
	{ 0, "weight", "samples|period",
	  "the unit of --folded; default: period, or samples if there are several events, whose "
	  "names then end each stack",
	  TAKE_CHOICE(struct report_options, weight, "neither samples nor period"),
	  .min = WEIGHT_SAMPLES, .words = "samples period" },
	{ 0, "perfetto", "FILE", "write a trace that ui.perfetto.dev opens",
	  TAKE_TEXT(struct report_options, perfetto), .completes = COMPLETE_FILE },
	{ 0, "html", "FILE", "write one page with a timeline, a flame graph and the records",
	  TAKE_TEXT(struct report_options, html), .completes = COMPLETE_FILE },
	{},
};

#define TAKE_LATENCY(kind) TAKE_BITS(struct report_options, latency, UINT32_C(1) << (kind))

static const struct verb_option latency_options[] = {
	{ 0, "findings", NULL,
	  "what stands out: crashes, who kept whom from running, who ran or slept far longer than it "
	  "uses to, busy disks, processes begun in a loop",
	  TAKE_FLAG(struct report_options, findings) },
	{ 0, "off-cpu", NULL, "how long threads were off a CPU, in which state, and who woke them",
	  TAKE_LATENCY(LATENCY_OFF_CPU) },
	{ 0, "wakeups", NULL, "how long threads waited for a CPU (run-queue delay)",
	  TAKE_LATENCY(LATENCY_WAKEUPS) },
	{ 0, "syscalls", NULL, "how long system calls took, and which never returned",
	  TAKE_LATENCY(LATENCY_SYSCALLS) },
	{ 0, "block", NULL, "how long block requests were queued, and with the device",
	  TAKE_LATENCY(LATENCY_BLOCK) },
	{ 0, "irq", NULL, "how long handlers of interrupts and softirqs took",
	  TAKE_LATENCY(LATENCY_IRQ) },
	{},
};

static const struct verb_option against_options[] = {
	{ 0, "against", "TIME",
	  "what was different: compare the time of --last or --since with the 5m, 30s or 1h before",
	  TAKE_VALUE(struct report_options, against, parse_duration,
		     "not a time such as 5m, 30s or 1h") },
	{},
};

/* Only all processes together show which one disturbs another. */
static int check_findings(const struct call *call, const struct report_options *o)
{
	if (o->latency)
		return bad_usage(call, "--findings does not work with other reports");
	if (o->selection.pids.n || o->selection.tids.n || o->selection.cpus)
		return bad_usage(call, "--findings does not work with --pid, --tid or -C: it is "
				       "about who disturbs whom");
	return EXIT_OK;
}

/* These are about samples, which latency reports do not count. */
static int check_latency(const struct call *call, const struct report_options *o)
{
	if (o->folded || o->perfetto || o->html)
		return bad_usage(call, "latency reports do not work with --folded, --perfetto or "
				       "--html");
	if (o->sorted || o->children || o->graph || o->percent_limit >= 0 || o->selection.event)
		return bad_usage(call, "latency reports do not work with --sort, --children, -g, "
				       "--percent-limit or --event");
	if (o->selection.about)
		return bad_usage(call, "latency reports do not work with --about: they name the "
				       "threads that wake others");
	return EXIT_OK;
}

static int check_against(const struct call *call, const struct report_options *o)
{
	const struct selection *s = &o->selection;

	if (o->folded || o->perfetto || o->latency || o->findings)
		return bad_usage(call, "--against does not work with --folded, --perfetto, "
				       "--findings or latency reports");
	if (o->sorted || o->children || o->graph || o->percent_limit >= 0 || s->about)
		return bad_usage(call, "--against does not work with --sort, --children, -g, "
				       "--percent-limit or --about");
	if (!s->last && !s->since)
		return bad_usage(call, "--against needs --last or --since: the time that is "
				       "compared with the time before");
	return EXIT_OK;
}

static int check_options(const struct call *call, const struct report_options *o)
{
	int pictures = !!o->folded + !!o->perfetto + !!o->html;

	if (pictures > 1)
		return bad_usage(call, "--folded, --perfetto and --html are mutually exclusive");
	if (call->json && pictures)
		return bad_usage(call, "--json does not work with --folded, --perfetto or --html");
	if (o->weight && !o->folded)
		return bad_usage(call, "--weight needs --folded");
	if (o->against)
		return check_against(call, o);
	if (!o->latency && !o->findings)
		return EXIT_OK;
	return check_latency(call, o) ?: o->findings ? check_findings(call, o) : EXIT_OK;
}

/* ── Of all reports ── */

void report_cleanup_symbols(struct symbols **s)
{
	input_tell_refused(*s);
	symbols_free(*s);
}

bool report_chose_none(const struct input *in, const struct selection *selection,
		       const struct aggregate *a)
{
	return !a->samples && input_tell_none(in, selection);
}

/* ── Output ── */

static int print_report(const struct call *call, const struct report_options *o,
			const struct input *in, const struct aggregate *a)
{
	struct report report = {
		.o = o, .in = in, .info = trace_info(in->trace), .a = a, .width = terminal().ws_col
	};

	if ((call->json ? report_json : report_text)(&report) < 0) {
		complain("cannot print the report: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Several events have no common unit: count samples, and mark each stack with its event. */
static void choose_weights(const struct report_options *o, const struct aggregate *a,
			   struct folded *folded)
{
	size_t events = 0;

	for (size_t i = 0; i < a->n_events; i++)
		events += a->events[i].weight.samples > 0;
	folded->events = events > 1;
	folded->by_period = o->weight == WEIGHT_PERIOD || (!o->weight && events == 1);
}

static int write_folded(const struct report_options *o, const struct aggregate *a)
{
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_(cleanup_fclose) FILE *f = NULL;
	struct folded folded = {};
	bool to_stdout = !strcmp(o->folded, "-");
	int r, fd = -EBADF;

	choose_weights(o, a, &folded);
	if (to_stdout) {
		folded_write(a, &folded, stdout); /* main() reports write errors */
	} else {
		r = outfile_open(o->folded, &out);
		if (r < 0)
			return outfile_failed(o->folded, r);
		fd = fcntl(out.fd, F_DUPFD_CLOEXEC, 3);
		f = fd >= 0 ? fdopen(fd, "w") : NULL;
		if (!f) {
			close_fd(fd);
			return outfile_failed(o->folded, -errno);
		}
		folded_write(a, &folded, f);
		errno = 0;
		if (fflush(f) || ferror(f))
			return outfile_failed(o->folded, -(errno ?: EIO));
		r = outfile_commit(&out);
		if (r < 0)
			return outfile_failed(o->folded, r);
	}
	fprintf(stderr, "%s: %" PRIu64 " stacks, %" PRIu64 " %s\n",
		to_stdout ? "folded" : o->folded, folded.lines, folded.weight,
		folded.by_period ? "by period" : "samples");
	return EXIT_OK;
}

static int report_input(struct call *call, const struct report_options *o,
			struct selection *selection, struct input *in)
{
	_cleanup_(aggregate_freep) struct aggregate *a = NULL;
	_cleanup_(report_cleanup_symbols) struct symbols *symbols = NULL;
	bool rows = !o->folded && !o->perfetto && !o->html;
	struct aggregate_options how = { .max_stack = o->max_stack,
					 .by_pid = rows && o->sort & SORT_PID,
					 .by_tid = rows && o->sort & SORT_TID,
					 .threads_alone = o->selection.tids.n,
					 .about = o->selection.about };
	_cleanup_(against_done) struct report_against against = {};
	int r;

	r = symbols_new(trace_info(in->trace), &symbols);
	if (r >= 0)
		r = aggregate_new(in->trace, symbols, &how, &a);
	if (r < 0) {
		complain("cannot read %s: out of memory", in->what);
		return EXIT_FAILED;
	}
	if (o->against) {
		r = against_begin(in, o, symbols, &against);
		if (r)
			return r;
	}
	if (o->perfetto || o->html)
		return report_picture(o, in, selection, a, &against);

	r = report_read(in, selection, a, NULL);
	if (r < 0 && r != -EBADMSG) {
		complain("cannot read %s: %s", in->what, strerror(-r));
		return EXIT_FAILED;
	}
	if (!r && !o->live && report_chose_none(in, selection, a))
		return EXIT_NOT_FOUND;
	/* Report the readable part even if the rest is damaged. */
	return (o->folded ? write_folded(o, a) : print_report(call, o, in, a))
		       ?: r < 0 ? EXIT_FAILED
				: EXIT_OK;
}

static int report(struct call *call, const struct report_options *o)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	struct selection window = o->against ? against_window(o) : o->selection;

	return input_open(call, o->file, &window, &in) ?: report_input(call, o, &window, &in);
}

int report_html(struct call *call, int fd, const char *file, const char *page)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	struct report_options o = { .html = page };
	int r = input_open_fd(fd, file, &o.selection, &in)
			?: report_input(call, &o, &o.selection, &in);

	selection_done(&o.selection);
	return r;
}

#define REPORT_OPTIONS                                                                  \
	{                                                                               \
		.sort = SORT_DEFAULT, .percent_limit = -1, .chain_limit = -1, .top = 20 \
	}

int report_functions(struct call *call, uint64_t since)
{
	struct report_options o = REPORT_OPTIONS;
	int r;

	o.live = true;
	o.selection.since = since;
	r = report(call, &o);
	fflush(stdout);
	return r;
}

static int run(struct call *call)
{
	struct report_options o = REPORT_OPTIONS;
	int r;

	if (!options_read(call, &o))
		r = call->code;
	else
		r = check_options(call, &o)
			    ?: o.against && !o.html ? report_against(call, &o)
		       : o.latency || o.findings    ? report_latency(call, &o)
						    : report(call, &o);
	selection_done(&o.selection);
	return r;
}

const struct verb verb_report = {
	.name = "report",
	.synopsis = "[-i FILE | NAME...] [OPTIONS]",
	.summary = "sum up records by function, event and process, or export pictures",
	.run = run,
	.options = { { .rows = options },
		     { .rows = latency_options,
		       .title =
			       "Instead of the report, what stands out, or how long things took:" },
		     { .rows = against_options,
		       .title = "Instead of the report, or on the page, what was different:" },
		     { .rows = instead_options, .title = "Instead of the report, files:" },
		     { .rows = selection_options,
		       .at = offsetof(struct report_options, selection),
		       .title = "To select records:" },
		     { .rows = selection_about,
		       .at = offsetof(struct report_options, selection) } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "Reads FILE (`-`: stdin; default: perf.data), which `perfctl snapshot` or `perf record`\n"
		"wrote, or, if NAMEs are given, a snapshot of these events.\n"
		"\n"
		"Examples:\n"
		"  perfctl report -i perf.data --children -g\n"
		"  perfctl report sampling/cpu --last 10s\n"
		"  perfctl report --last 10s --findings\n"
		"  perfctl report sched/ --last 10s --wakeups --off-cpu --pid 4711\n"
		"  perfctl report sched/ sampling/ --last 10s --against 5m\n"
		"  perfctl report sched/ sampling/ --last 10s --against 5m --html page.html\n"
		"  perfctl report --folded | flamegraph.pl > flame.svg\n"
		"  perfctl report sched/ --perfetto sched.pftrace\n",
};
