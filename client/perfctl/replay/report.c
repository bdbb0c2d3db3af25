// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl report: sums up what was recorded, for the terminal, or as a file that other tools show.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/perfctl/events/selection.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/pictures/folded.h"
#include "client/perfctl/pictures/html.h"
#include "client/perfctl/pictures/perfetto.h"
#include "client/perfctl/replay/report.h"
#include "client/perfctl/trace/symbols.h"

enum {
	OPT_SORT = 0x300,
	OPT_CHILDREN,
	OPT_NO_CHILDREN,
	OPT_PERCENT_LIMIT,
	OPT_MAX_STACK,
	OPT_TOP,
	OPT_EVENT,
	OPT_FOLDED,
	OPT_WEIGHT,
	OPT_PERFETTO,
	OPT_HTML,
};

static const struct option longs[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "sort", required_argument, NULL, OPT_SORT },
	{ "children", no_argument, NULL, OPT_CHILDREN },
	{ "no-children", no_argument, NULL, OPT_NO_CHILDREN },
	{ "call-graph", optional_argument, NULL, 'g' },
	{ "percent-limit", required_argument, NULL, OPT_PERCENT_LIMIT },
	{ "max-stack", required_argument, NULL, OPT_MAX_STACK },
	{ "top", required_argument, NULL, OPT_TOP },
	{ "event", required_argument, NULL, OPT_EVENT },
	{ "folded", optional_argument, NULL, OPT_FOLDED },
	{ "weight", required_argument, NULL, OPT_WEIGHT },
	{ "perfetto", required_argument, NULL, OPT_PERFETTO },
	{ "html", required_argument, NULL, OPT_HTML },
	SELECTION_OPTIONS,
	{},
};

/* ── The command line ── */

static int parse_sort(const struct call *call, const char *text, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned key;
	} keys[] = { { "comm", SORT_COMM },
		     { "dso", SORT_DSO },
		     { "symbol", SORT_SYMBOL },
		     { "sym", SORT_SYMBOL } };
	unsigned sort = 0;

	for (const char *word = text; word; word = strchr(word, ',')) {
		unsigned key = 0;
		size_t len;

		word += *word == ',';
		len = strcspn(word, ",");
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (strlen(keys[i].name) == len && !strncmp(keys[i].name, word, len))
				key = keys[i].key;
		if (!key)
			return bad_usage(call, "--sort %.*s: can be comm, dso and symbol", (int)len,
					 word);
		sort |= key;
	}
	*ret = sort;
	return EXIT_OK;
}

static int parse_graph(const struct call *call, const char *text, enum report_graph *ret)
{
	if (!text || !strcmp(text, "caller"))
		*ret = GRAPH_CALLER;
	else if (!strcmp(text, "callee"))
		*ret = GRAPH_CALLEE;
	else
		return bad_usage(call, "-g %s: can be caller or callee", text);
	return EXIT_OK;
}

static int parse_percent(const struct call *call, const char *text, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= 100))
		return bad_usage(call, "--percent-limit %s: not a number from 0 to 100", text);
	*ret = v;
	return EXIT_OK;
}

static int parse_count(const struct call *call, const char *option, size_t *ret)
{
	uint64_t v;

	if (parse_number(optarg, &v) < 0 || !v || v > 1000000)
		return bad_usage(call, "%s %s: not a number from 1 to 1000000", option, optarg);
	*ret = v;
	return EXIT_OK;
}

static int parse_weight(const struct call *call, const char *text, struct report_options *o)
{
	o->weigh_samples = !strcmp(text, "samples");
	o->weigh_period = !strcmp(text, "period");
	if (!o->weigh_samples && !o->weigh_period)
		return bad_usage(call, "--weight %s: can be samples or period", text);
	return EXIT_OK;
}

static int take_option(const struct call *call, struct report_options *o, int opt)
{
	switch (opt) {
	case 'i':
		o->file = optarg;
		return EXIT_OK;
	case 'g':
		return parse_graph(call, optarg, &o->graph);
	case OPT_SORT:
		o->sorted = true;
		return parse_sort(call, optarg, &o->sort);
	case OPT_CHILDREN:
	case OPT_NO_CHILDREN:
		o->children = opt == OPT_CHILDREN;
		return EXIT_OK;
	case OPT_PERCENT_LIMIT:
		return parse_percent(call, optarg, &o->percent_limit);
	case OPT_MAX_STACK:
		return parse_count(call, "--max-stack", &o->max_stack);
	case OPT_TOP:
		return parse_count(call, "--top", &o->top);
	case OPT_EVENT:
		o->event = optarg;
		return EXIT_OK;
	case OPT_FOLDED:
		o->folded = optarg ?: "-";
		return EXIT_OK;
	case OPT_WEIGHT:
		return parse_weight(call, optarg, o);
	case OPT_PERFETTO:
		o->perfetto = optarg;
		return EXIT_OK;
	case OPT_HTML:
		o->html = optarg;
		return EXIT_OK;
	}
	return EXIT_FAILED;
}

static int check_options(const struct call *call, const struct report_options *o)
{
	int pictures = !!o->folded + !!o->perfetto + !!o->html;

	if (pictures > 1)
		return bad_usage(call, "--folded, --perfetto and --html: one at a time");
	if (call->json && pictures)
		return bad_usage(call,
				 "--json is for the report, which there is not with a picture");
	if ((o->weigh_samples || o->weigh_period) && !o->folded)
		return bad_usage(call, "--weight goes with --folded");
	return EXIT_OK;
}

/* What was selected, as it was typed; what does not fit is left out. */
static void note_selection(struct report_options *o, int opt)
{
	static const struct option options[] = { SELECTION_OPTIONS };
	size_t n = strlen(o->selected);

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].val == opt)
			snprintf(o->selected + n, sizeof(o->selected) - n, "%s--%s%s%s",
				 n ? ", " : "", options[i].name, options[i].has_arg ? " " : "",
				 options[i].has_arg ? optarg : "");
}

/* ── Reading ── */

static void cleanup_symbols(struct symbols **s)
{
	input_tell_refused(*s);
	symbols_free(*s);
}

/* Which events --event wants, a byte for each; NULL: no memory. */
static bool *wanted_events(const struct trace *t, const char *glob)
{
	size_t n = trace_events(t);
	bool *wanted = calloc(n + 1, sizeof(*wanted));

	for (size_t i = 0; wanted && i < n; i++)
		wanted[i] = !glob || !fnmatch(glob, trace_event(t, i)->name, 0);
	return wanted;
}

/* A picture that is written while the records come. */
struct picture {
	struct perfetto *perfetto;
	struct html *html;
};

static int picture_add(struct picture *p, const struct trace_record *record,
		       const struct flame_node *leaf)
{
	if (p->perfetto)
		return perfetto_add(p->perfetto, record, leaf);
	return p->html ? html_add(p->html, record, leaf) : 0;
}

static void picture_done(struct picture *p)
{
	perfetto_free(p->perfetto);
	html_free(p->html);
}

/* The whole input, summed up, and told to the picture. 0, -EBADMSG (damaged at some place, which
 * has been said; all before it is there), -ENOMEM, or an error of writing. */
static int read_all(struct input *in, const struct selection *selection, const bool *wanted,
		    struct aggregate *a, struct picture *picture)
{
	const struct flame_node *leaf;
	struct trace_record record;
	bool chosen;
	int r;

	while ((r = input_next(in, selection, &record, &chosen)) > 0) {
		int failed;

		if (record.kind == TRACE_SAMPLE && record.event && !wanted[record.event->index])
			continue;
		if (chosen)
			failed = aggregate_add(a, &record, &leaf)
					 ?: picture_add(picture, &record, leaf);
		else
			failed = aggregate_pass(a, &record);
		if (failed < 0)
			return failed;
	}
	aggregate_finish(a);
	return r;
}

/* Whether the numbers of processes that were asked for chose no record, which is said. */
static bool chose_none(const struct input *in, const struct selection *selection,
		       const struct aggregate *a)
{
	if (a->samples || !selection_has_ids(selection))
		return false;
	selection_tell_none(selection, in->what);
	return true;
}

/* ── What becomes of it ── */

static size_t terminal_width(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		return 0;
	return w.ws_col;
}

static int print_report(const struct call *call, const struct report_options *o,
			const struct input *in, const struct aggregate *a)
{
	struct report report = {
		.o = o, .in = in, .info = trace_info(in->trace), .a = a, .width = terminal_width()
	};

	if ((call->json ? report_json : report_text)(&report) < 0) {
		complain("cannot print the report: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Several events have no unit in common: they are told apart, and each sample is one. */
static void choose_weights(const struct report_options *o, const struct aggregate *a,
			   struct folded *folded)
{
	size_t events = 0;

	for (size_t i = 0; i < a->n_events; i++)
		events += a->events[i].weight.samples > 0;
	folded->events = events > 1;
	folded->by_period = o->weigh_period || (!o->weigh_samples && events == 1);
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
		folded_write(a, &folded, stdout); /* main looks whether that was possible */
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

static int begin_picture(const struct report_options *o, const struct input *in,
			 const struct aggregate *a, int fd, struct picture *ret)
{
	if (o->perfetto)
		return perfetto_new(fd, in->trace, a, &ret->perfetto);
	return html_new(fd, in->trace, &ret->html);
}

static int finish_picture(const struct report_options *o, const struct input *in,
			  const struct aggregate *a, bool damaged, struct picture *p)
{
	struct html_about about = {
		.what = in->what,
		.selected = *o->selected ? o->selected : NULL,
		.damaged = damaged ? trace_error() : NULL,
	};

	return p->html ? html_finish(p->html, a, &about) : perfetto_finish(p->perfetto);
}

static int write_picture(const struct report_options *o, struct input *in,
			 const struct selection *selection, const bool *wanted, struct aggregate *a)
{
	const char *path = o->perfetto ?: o->html;
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_(picture_done) struct picture picture = {};
	bool damaged = false;
	int r;

	r = outfile_open(path, &out);
	if (r >= 0)
		r = begin_picture(o, in, a, out.fd, &picture);
	if (r >= 0) {
		r = read_all(in, selection, wanted, a, &picture);
		if (!r && chose_none(in, selection, a))
			return EXIT_NOT_FOUND;
		damaged = r == -EBADMSG; /* what could be read is a picture all the same */
	}
	if (r >= 0 || damaged)
		r = finish_picture(o, in, a, damaged, &picture);
	if (r >= 0)
		r = outfile_commit(&out);
	if (r < 0)
		return outfile_failed(path, r);
	if (picture.perfetto && perfetto_damaged(picture.perfetto))
		complain("%s: the fields of %" PRIu64 " records do not fit the formats of their "
			 "events; these records are there without them",
			 path, perfetto_damaged(picture.perfetto));
	return damaged ? EXIT_FAILED : EXIT_OK;
}

static int report(struct call *call, const struct report_options *o, struct selection *selection)
{
	_cleanup_(input_done) struct input in = { .fd = -EBADF };
	_cleanup_(aggregate_freep) struct aggregate *a = NULL;
	_cleanup_(cleanup_symbols) struct symbols *symbols = NULL;
	_cleanup_free_ bool *wanted = NULL;
	struct aggregate_options options = { .max_stack = o->max_stack,
					     .threads_alone = selection->tids.n };
	int r;

	r = input_open(call, o->file, selection, &in);
	if (r)
		return r;
	wanted = wanted_events(in.trace, o->event);
	r = symbols_new(trace_info(in.trace), &symbols);
	if (r >= 0)
		r = aggregate_new(in.trace, symbols, &options, &a);
	if (r < 0 || !wanted) {
		complain("cannot read %s: out of memory", in.what);
		return EXIT_FAILED;
	}
	if (o->perfetto || o->html)
		return write_picture(o, &in, selection, wanted, a);

	r = read_all(&in, selection, wanted, a, &(struct picture){});
	if (r < 0 && r != -EBADMSG) {
		complain("cannot read %s: %s", in.what, strerror(-r));
		return EXIT_FAILED;
	}
	if (!r && chose_none(&in, selection, a))
		return EXIT_NOT_FOUND;
	/* What could be read is reported even if the rest is damaged. */
	return (o->folded ? write_folded(o, a) : print_report(call, o, &in, a))
		       ?: r < 0 ? EXIT_FAILED
				: EXIT_OK;
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(selection_done) struct selection selection = {};
	struct report_options o = { .sort = SORT_ALL, .percent_limit = -1, .top = 20 };
	int opt, r;

	if (options_start(call, argc, argv, "i:g::" SELECTION_SHORTS, longs) < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0) {
		r = selection_option(&selection, call, opt);
		if (r < 0)
			return EXIT_USAGE;
		if (r > 0)
			note_selection(&o, opt);
		r = r ? EXIT_OK : take_option(call, &o, opt);
		if (r)
			return r;
	}
	if (opt < 0)
		return call->code;
	return check_options(call, &o) ?: report(call, &o, &selection);
}

const struct verb verb_report = {
	.name = "report",
	.synopsis = "[-i FILE | NAME...] [OPTIONS]",
	.summary = "sum up what was recorded: functions, events, processes; pictures of it",
	.run = run,
	.reads_saves = true,
	.help = "Reads FILE (`-`: stdin; by default perf.data), as `perfctl snapshot` or `perf "
		"record` "
		"wrote it,\n"
		"or, if there are NAMEs, what these events hold now.\n"
		"\n"
		"  -i, --input FILE     read this file\n"
		"  --sort KEYS          functions by comm, dso, symbol, or some of these\n"
		"  --children           add what a function called to what it did itself\n"
		"  -g, --call-graph[=caller|callee]\n"
		"                       also call chains: callers first, or from what was hit "
		"upwards\n"
		"  --percent-limit N    leave out what is less than N percent\n"
		"  --max-stack N        use N functions of a chain at most, from the innermost on\n"
		"  --top N              lines of each table (20)\n"
		"  --event GLOB         of these events only\n"
		"\n"
		"Instead of the report:\n"
		"  --folded[=FILE]      stacks as lines, for flame graph tools; without FILE to "
		"stdout\n"
		"  --weight samples|period\n"
		"                       what they count; by default the period, or samples if "
		"there\n"
		"                       are several events, which then stand at the end of each "
		"stack\n"
		"  --perfetto FILE      a trace that ui.perfetto.dev opens\n"
		"  --html FILE          one page with all of it: timeline, flame graph, records\n"
		"\n"
		"Of all records only some:\n"
		"  --last TIME, --since WHEN, --until WHEN, -C, --cpu CPUS\n"
		"  --pid LIST           by these processes\n"
		"  --tid LIST           by these threads\n"
		"  --about              also what others did to them: wakeups, switches to them\n"
		"\n"
		"Examples:\n"
		"  perfctl report -i perf.data --children -g\n"
		"  perfctl report sampling/cpu --last 10s\n"
		"  perfctl report --folded | flamegraph.pl > flame.svg\n"
		"  perfctl report sched/ --perfetto sched.pftrace\n",
};
