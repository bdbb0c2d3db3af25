// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl script: prints the records of a perf.data file or of a new snapshot, in order of time. */
#include "client/perfctl/replay/script.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#define OUTPUT_BUFFER (1 << 20)

static void script_done(struct script *s)
{
	decoders_done(&s->decoders);
	free(s->events);
	input_tell_refused(s->symbols);
	symbols_free(s->symbols);
	input_done(&s->in);
	selection_done(&s->selection);
}

static const struct verb_option options[] = {
	{ 'i', "input", "FILE", "read this perf.data file; -: stdin; default: perf.data",
	  TAKE_TEXT(struct script, file), .completes = COMPLETE_FILE },
	{ 'F', "fields", "LIST",
	  "print comm, tid, pid, time, cpu, event, trace, ip, sym, symoff, dso, addr, period, "
	  "tod; +FIELD adds one, -FIELD removes one; sw:, hw:, trace: or raw:LIST, for one type of event",
	  TAKE_TEXT(struct script, fields), .completes = COMPLETE_WORDS, .words = SCRIPT_FIELDS },
	{ 'G', "hide-call-graph", NULL, "print no call chains",
	  TAKE_FLAG(struct script, no_chains) },
	{ 0, "max-stack", "N", "print at most N functions of a call chain",
	  TAKE_NUMBER(struct script, max_stack, "not a number from 1 to 1024"), .min = 1,
	  .max = SCRIPT_STACK_MAX },
	{ 0, "time", "KIND",
	  "mono: as recorded (CLOCK_MONOTONIC); real: date and time of day; relative: since the "
	  "first record",
	  TAKE_CHOICE(struct script, time,
		      "neither mono, real nor relative (--since and --until select a time "
		      "range)"),
	  .words = "mono real relative" },
	{ 0, "ns", NULL, "print nanoseconds instead of microseconds",
	  TAKE_FLAG(struct script, nanoseconds) },
	{ 0, "no-symbols", NULL, "print only addresses", TAKE_FLAG(struct script, no_symbols) },
	{ 0, "no-demangle", NULL, "print names of C++ and Rust as they are in the files",
	  TAKE_FLAG(struct script, keep_mangled) },
	{ 0, "show-task-events", NULL, "also print forks, execs and exits",
	  TAKE_FLAG(struct script, show_tasks) },
	{ 0, "show-mmap-events", NULL, "also print mappings", TAKE_FLAG(struct script, show_maps) },
	{ 0, "show-lost-events", NULL, "also print where records were lost",
	  TAKE_FLAG(struct script, show_lost) },
	{},
};

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
		complain("%s does not store the time of day; use --time mono or --time "
			 "relative",
			 s->in.what);
		return EXIT_FAILED;
	}
	return script_choose_fields(s, call);
}

static bool is_shown(const struct script *s, const struct trace_record *r)
{
	/* input_next() returns these of all times, because they say who runs now. */
	if (r->kind != TRACE_SAMPLE && r->kind != TRACE_LOST &&
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

/* Reports lost records, unless --show-lost-events prints them in their place. */
static void tell_lost(const struct script *s, uint64_t lost)
{
	if (!lost || s->show_lost)
		return;
	fflush(stdout);
	fprintf(stderr,
		"perfctl: %" PRIu64 " record%s missing in %s, lost during recording; "
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
	if (r == 0 && !s->n && input_tell_none(&s->in, &s->selection))
		return EXIT_NOT_FOUND;
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

static void cleanup_script(struct script **s)
{
	if (*s)
		script_done(*s);
	free(*s);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_script) struct script *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return EXIT_FAILED;
	s->in.fd = -EBADF;
	s->max_stack = SCRIPT_STACK_MAX;
	if (!options_read(call, s))
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
	.summary = "print the records of a perf.data file or of a new snapshot",
	.run = run,
	.options = { { .rows = options },
		     { .rows = selection_options, .at = offsetof(struct script, selection) },
		     { .rows = selection_about, .at = offsetof(struct script, selection) } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "Prints the lines of `perf script`; --json prints an object a line. NAMEs are events,\n"
		"NAMESPACE/ or globs of these: script first takes a snapshot of them, as `perfctl\n"
		"snapshot` does, and discards it afterwards.\n"
		"\n"
		"Examples:\n"
		"  perfctl script sched/switch --last 1s\n"
		"  perfctl script -i perf.data -F comm,pid,time,event,trace\n"
		"  perfctl script -i perf.data --time real -F +period\n"
		"  perfctl script -i perf.data --json | jq .comm\n",
};
