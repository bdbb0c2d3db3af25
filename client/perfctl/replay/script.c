// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl script: the records of a perf.data file, or of a snapshot taken now, in order of time. */
#include "client/perfctl/replay/script.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#define OUTPUT_BUFFER (1 << 20)

enum {
	OPT_TIME = 0x300, /* above the global ones and those of selection.h */
	OPT_NS,
	OPT_MAX_STACK,
	OPT_NO_SYMBOLS,
	OPT_NO_DEMANGLE,
	OPT_SHOW_TASKS,
	OPT_SHOW_MAPS,
	OPT_SHOW_LOST,
};

static const struct option longs[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "fields", required_argument, NULL, 'F' },
	{ "hide-call-graph", no_argument, NULL, 'G' },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "ns", no_argument, NULL, OPT_NS },
	{ "max-stack", required_argument, NULL, OPT_MAX_STACK },
	{ "no-symbols", no_argument, NULL, OPT_NO_SYMBOLS },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "show-task-events", no_argument, NULL, OPT_SHOW_TASKS },
	{ "show-mmap-events", no_argument, NULL, OPT_SHOW_MAPS },
	{ "show-lost-events", no_argument, NULL, OPT_SHOW_LOST },
	SELECTION_OPTIONS,
	{},
};

static void script_done(struct script *s)
{
	decoders_done(&s->decoders);
	free(s->events);
	input_tell_refused(s->symbols);
	symbols_free(s->symbols);
	input_done(&s->in);
	selection_done(&s->selection);
}

static int take_time(const struct call *call, struct script *s)
{
	static const char *const names[] = {
		[TIME_MONO] = "mono", [TIME_REAL] = "real", [TIME_RELATIVE] = "relative"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(optarg, names[i])) {
			s->time = (enum script_time)i;
			return EXIT_OK;
		}
	return bad_usage(call,
			 "--time %s: neither mono, real nor relative (what part of the time is "
			 "wanted, --since and --until say)",
			 optarg);
}

static int take_max_stack(const struct call *call, struct script *s)
{
	uint64_t n;

	if (parse_number(optarg, &n) < 0 || !n || n > SCRIPT_STACK_MAX)
		return bad_usage(call, "--max-stack %s: not a number from 1 to %d", optarg,
				 SCRIPT_STACK_MAX);
	s->max_stack = (size_t)n;
	return EXIT_OK;
}

static int take_option(struct call *call, int opt, struct script *s)
{
	switch (opt) {
	case 'i':
		s->file = optarg;
		break;
	case 'F':
		s->fields = optarg;
		break;
	case 'G':
		s->no_chains = true;
		break;
	case OPT_TIME:
		return take_time(call, s);
	case OPT_NS:
		s->nanoseconds = true;
		break;
	case OPT_MAX_STACK:
		return take_max_stack(call, s);
	case OPT_NO_SYMBOLS:
		s->no_symbols = true;
		break;
	case OPT_NO_DEMANGLE:
		s->keep_mangled = true;
		break;
	case OPT_SHOW_TASKS:
		s->show_tasks = true;
		break;
	case OPT_SHOW_MAPS:
		s->show_maps = true;
		break;
	case OPT_SHOW_LOST:
		s->show_lost = true;
		break;
	default:
		return selection_option(&s->selection, call, opt) < 0 ? EXIT_USAGE : EXIT_OK;
	}
	return EXIT_OK;
}

static int open_events(struct script *s)
{
	size_t n = trace_events(s->in.trace);

	s->events = calloc(n + 1, sizeof(*s->events));
	if (!s->events || decoders_init(&s->decoders, n) < 0)
		return -ENOMEM;
	s->n_events = n;
	for (size_t i = 0; i < n; i++) {
		const struct trace_event *e = trace_event(s->in.trace, i);
		int r;

		s->events[i].event = e;
		s->name_width = MAX(s->name_width, (int)MIN(strlen(e->name), 256));
		r = decoders_get(&s->decoders, e, &s->events[i].decoder);
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_symbols(struct script *s)
{
	int r = s->no_symbols ? 0 : symbols_new(trace_info(s->in.trace), &s->symbols);

	if (s->symbols && s->keep_mangled)
		symbols_keep_mangled(s->symbols);
	return r;
}

static int open_all(struct call *call, struct script *s)
{
	int r = input_open(call, s->file, &s->selection, &s->in);

	if (r)
		return r;
	if (open_events(s) < 0 || open_symbols(s) < 0) {
		complain("cannot read %s: out of memory", s->in.what);
		return EXIT_FAILED;
	}
	if (s->time == TIME_REAL && !trace_info(s->in.trace)->realtime_offset) {
		complain("%s does not say what time of day its times are; --time mono and relative "
			 "need no such thing",
			 s->in.what);
		return EXIT_FAILED;
	}
	return script_choose_fields(s, call);
}

static bool is_shown(const struct script *s, const struct trace_record *r)
{
	/* What is no sample comes from all times, since it says who runs now. */
	if (r->kind != TRACE_SAMPLE &&
	    (!selection_wants_when(&s->selection, r->time, r->cpu) ||
	     !(selection_wants_whose(&s->selection, r->pid, r->tid) ||
	       (s->selection.about && r->kind == TRACE_FORK &&
		selection_wants_whose(&s->selection, r->ppid, r->ptid)))))
		return false;
	switch (r->kind) {
	case TRACE_SAMPLE:
		return true;
	case TRACE_COMM:
	case TRACE_FORK:
	case TRACE_EXIT:
		return s->show_tasks;
	case TRACE_MMAP:
		return s->show_maps && r->map && r->type != PERF_RECORD_KSYMBOL;
	case TRACE_LOST:
		return s->show_lost;
	default:
		return false;
	}
}

/* What was lost is told, where it is not shown in its place. */
static void tell_lost(const struct script *s, uint64_t lost)
{
	if (!lost || s->show_lost)
		return;
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s not in %s: lost when it was recorded; "
		"--show-lost-events shows where\n",
		lost, lost == 1 ? " is" : "s are", s->in.what);
}

static int print_all(struct script *s)
{
	struct trace_record record;
	uint64_t lost = 0;
	bool wanted;
	int r;

	while ((r = input_next(&s->in, &s->selection, &record, &wanted)) > 0) {
		if (record.kind == TRACE_LOST)
			lost += record.lost;
		if (!wanted || !is_shown(s, &record))
			continue;
		if (!s->first)
			s->first = record.time;
		if (s->json)
			script_print_json(s, &record, stdout);
		else
			script_print(s, &record, stdout);
		s->n++;
		if (ferror(stdout))
			break;
	}
	tell_lost(s, lost);
	if (r == 0 && !s->n && selection_has_ids(&s->selection)) {
		selection_tell_none(&s->selection, s->in.what);
		return EXIT_NOT_FOUND;
	}
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

static void cleanup_script(struct script **s)
{
	if (*s)
		script_done(*s);
	free(*s);
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_script) struct script *s = calloc(1, sizeof(*s));
	int opt, r;

	if (!s)
		return EXIT_FAILED;
	s->in.fd = -EBADF;
	s->max_stack = SCRIPT_STACK_MAX;
	r = options_start(call, argc, argv, "i:F:G" SELECTION_SHORTS, longs);
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0) {
		r = take_option(call, opt, s);
		if (r)
			return r;
	}
	if (opt < 0)
		return call->code;
	s->json = call->json;
	r = open_all(call, s);
	if (r)
		return r;
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, NULL, _IOFBF, OUTPUT_BUFFER);
	return print_all(s);
}

const struct verb verb_script = {
	.name = "script",
	.synopsis = "[NAME... | -i FILE] [OPTIONS]",
	.summary = "print the records of a perf.data file or of a snapshot taken now",
	.run = run,
	.reads_saves = true,
	.help = "  -i, --input FILE       a perf.data file; -: stdin; else perf.data\n"
		"  -F, --fields LIST      of comm, tid, pid, time, cpu, event, trace, ip, sym, "
		"symoff,\n"
		"                         dso, addr, period, tod; +FIELD or -FIELD: one more or "
		"less;\n"
		"                         for events of one type: sw:, hw:, trace: or raw:LIST\n"
		"  -G, --hide-call-graph  no call chains\n"
		"  --max-stack N          no more than N of a call chain\n"
		"  --time KIND            mono: as they were recorded (CLOCK_MONOTONIC); real: "
		"date and\n"
		"                         time of day; relative: since the first one\n"
		"  --ns                   with nanoseconds, instead of microseconds\n"
		"  --last TIME            the newest so much: 10s, 500ms\n"
		"  --since, --until TIME  1234.567 as records have it, -10s, @1700000000,\n"
		"                         \"2026-11-21 10:00:00\" or 10:00:00\n"
		"  -C, --cpu LIST         of these CPUs: 0-3,8\n"
		"  --pid LIST             by these processes\n"
		"  --tid LIST             by these threads\n"
		"  --about                also what others did to them: wakeups, switches to them\n"
		"  --no-symbols           addresses alone\n"
		"  --no-demangle          names of C++ and Rust as they are in the files\n"
		"  --show-task-events     also who forked, executed and exited,\n"
		"  --show-mmap-events     what was mapped,\n"
		"  --show-lost-events     and where records were lost\n"
		"\n"
		"Lines are those of `perf script`; with --json: an object a line. NAMEs are "
		"events,\n"
		"NAMESPACE/ or globs of these: of them a snapshot is taken first, as `perfctl\n"
		"snapshot` does, and is kept nowhere.\n"
		"\n"
		"Examples:\n"
		"  perfctl script sched/switch --last 1s\n"
		"  perfctl script -i perf.data -F comm,pid,time,event,trace\n"
		"  perfctl script -i perf.data --time real -F +period\n"
		"  perfctl script -i perf.data --json | jq .comm\n",
};
