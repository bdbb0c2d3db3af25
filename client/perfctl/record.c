// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl record: events into perf.data files, until a time, a size, a signal or a command's end;
 * and, with -e EVENT -P NAMESPACE, the making of such events, as perf record was to make them.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "client/perfctl/events/find.h"
#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/recording.h"
#include "client/perfctl/overwrite.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/rates.h"
#include "client/perfctl/workload.h"
#include "proto/clock.h"

#define PERSISTENT "persistent/"

enum {
	OPT_SWITCH = 0x300,
	OPT_MAX_FILES,
	OPT_MAX_SIZE,
	OPT_TIMEOUT,
	OPT_OVERWRITE,
	OPT_HISTORY,
	OPT_FILTER,
};

static const struct option longs[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "persistent", required_argument, NULL, 'P' },
	{ "kill", no_argument, NULL, 'k' },
	{ "output", required_argument, NULL, 'o' },
	{ "all-cpus", no_argument, NULL, 'a' },
	{ "mmap-pages", required_argument, NULL, 'm' },
	{ "count", required_argument, NULL, 'c' },
	{ "freq", required_argument, NULL, 'F' },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "switch-output", optional_argument, NULL, OPT_SWITCH },
	{ "switch-max-files", required_argument, NULL, OPT_MAX_FILES },
	{ "max-size", required_argument, NULL, OPT_MAX_SIZE },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "overwrite", no_argument, NULL, OPT_OVERWRITE },
	{ "history", no_argument, NULL, OPT_HISTORY },
	SELECTION_OPTIONS,
	{},
};

struct record {
	struct make_events make; /* -P and what belongs to it */
	char **names;		 /* of events to be read */
	size_t n_names;
	bool kill, overwrite, on_signal;
	uint64_t timeout;
	struct selection selection;
	struct recording_options options;
};

static void record_done(struct record *o)
{
	for (size_t i = 0; i < o->n_names; i++)
		free(o->names[i]);
	free(o->names);
	selection_done(&o->selection);
}

/* ── the command line ───────────────────────────────────────────────────────────────────── */

static int add_name(struct record *o, const char *name, size_t n)
{
	o->names[o->n_names] = strndup(name, n);
	return o->names[o->n_names++] ? EXIT_OK : EXIT_FAILED;
}

/* persistent/NAMESPACE/, persistent/NAMESPACE/NAME/: events that are there; all else: new ones. */
static int take_event(struct call *call, struct record *o)
{
	size_t prefix = strlen(PERSISTENT), n = strlen(optarg);

	if (strncmp(optarg, PERSISTENT, prefix) != 0)
		return make_events_event(call, &o->make, optarg);
	if (n < prefix + 2 || optarg[n - 1] != '/')
		return bad_usage(call, "-e %s: persistent/NAMESPACE/ or persistent/NAMESPACE/NAME/",
				 optarg);
	/* What these buffers hold is what was asked for. */
	o->options.history = true;
	if (memchr(optarg + prefix, '/', n - prefix - 1))
		return add_name(o, optarg + prefix, n - prefix - 1);
	return add_name(o, optarg + prefix, n - prefix);
}

/* As perf has it: nothing or `signal`, a size, a time. */
static int take_switch(struct call *call, struct record *o)
{
	const char *unit = optarg ? optarg + strspn(optarg, "0123456789.") : NULL;
	int r;

	o->options.switches = true;
	if (!optarg || !strcmp(optarg, "signal")) {
		o->on_signal = true;
		return EXIT_OK;
	}
	if (*unit && strchr("BKMG", *unit))
		r = parse_size(optarg, &o->options.switch_size);
	else
		r = *unit ? parse_duration(optarg, &o->options.switch_time) : -EINVAL;
	if (r < 0)
		return bad_usage(call,
				 "--switch-output=%s: `signal`, a size as 100M, or a time as 30s",
				 optarg);
	return EXIT_OK;
}

static int take_number(struct call *call, int opt, struct record *o)
{
	int r;

	switch (opt) {
	case OPT_MAX_FILES:
		r = parse_number(optarg, &o->options.max_files);
		if (r < 0 || !o->options.max_files)
			return bad_usage(call, "--switch-max-files %s: not a number above 0",
					 optarg);
		return EXIT_OK;
	case OPT_MAX_SIZE:
		if (parse_size(optarg, &o->options.max_size) < 0)
			return bad_usage(call, "--max-size %s: not a size as 100M", optarg);
		return EXIT_OK;
	default:
		if (parse_duration(optarg, &o->timeout) < 0)
			return bad_usage(call, "--timeout %s: not a time as 10s or 500ms", optarg);
		return EXIT_OK;
	}
}

static int take_option(struct call *call, int opt, struct record *o)
{
	switch (opt) {
	case 'e':
		return take_event(call, o);
	case 'k':
		o->kill = true;
		return EXIT_OK;
	case 'o':
		o->options.output = optarg;
		return EXIT_OK;
	case 'a': /* the default */
		return EXIT_OK;
	case OPT_SWITCH:
		return take_switch(call, o);
	case OPT_MAX_FILES:
	case OPT_MAX_SIZE:
	case OPT_TIMEOUT:
		return take_number(call, opt, o);
	case OPT_OVERWRITE:
		o->overwrite = true;
		return EXIT_OK;
	case OPT_HISTORY:
		o->options.history = true;
		return EXIT_OK;
	case OPT_FILTER:
		return make_events_filter(call, &o->make, optarg);
	case SELECTION_CPU:
		o->make.cpus = optarg;
		break;
	default:
		break;
	}
	switch (selection_option(&o->selection, call, opt)) {
	case 1:
		return EXIT_OK;
	case 0:
		return make_events_option(call, &o->make, opt, optarg);
	default:
		return EXIT_USAGE;
	}
}

static int check(struct call *call, struct record *o)
{
	if (o->make.n && !o->make.ns)
		return bad_usage(call,
				 "-e %s: with -P NAMESPACE it makes an event that stays; to read "
				 "those that are there: NAME, or -e persistent/NAMESPACE/",
				 o->make.events[0].event);
	if (o->make.ns && !o->make.n)
		return bad_usage(call, "-P %s: what shall be recorded there? -e EVENT is missing",
				 o->make.ns);
	if (o->make.ns && (o->n_names || call->n_operands))
		return bad_usage(
			call, "-P makes events, and NAME or persistent/ reads such: one of them");
	if (o->make.ns && (o->kill || o->overwrite || o->options.switches || o->options.output))
		return bad_usage(call, "-P makes events, which record into their buffers; -k, -o, "
				       "--overwrite and --switch-output are for reading them");
	if (o->make.ns && (selection_has_ids(&o->selection) || o->selection.last ||
			   o->selection.since || o->selection.until))
		return bad_usage(
			call, "-P makes events; --pid, --tid, --last, --since and --until are for "
			      "reading them (--filter 'common_pid == N' for making)");
	if (o->selection.about)
		return bad_usage(call,
				 "--about is for snapshot, script and report, which look into "
				 "the records");
	if (!o->make.ns && (o->make.opts.buffer || o->make.opts.period || o->make.opts.flags))
		return bad_usage(call,
				 "-m, -c, -F and -g are for events that are made: -P is missing");
	if (call->command && !call->command[0])
		return bad_usage(call, "-- needs a command behind it");
	if (o->options.output && !strcmp(o->options.output, "-") &&
	    (o->options.switches || o->overwrite))
		return bad_usage(call,
				 "-o -: one stream has no second file for --switch-output and "
				 "--overwrite");
	if (o->options.max_files && !o->options.switches)
		return bad_usage(call, "--switch-max-files belongs to --switch-output");
	if (o->overwrite && (o->options.switch_size || o->options.switch_time))
		return bad_usage(
			call, "--overwrite: a file is written with each SIGUSR2, and at the end");
	if (call->connect.direct && o->kill)
		return bad_usage(call, "-k and --direct: without a daemon nobody deletes events");
	return EXIT_OK;
}

static int take_operands(struct call *call, struct record *o)
{
	for (size_t i = 0; i < call->n_operands; i++)
		if (add_name(o, call->operands[i], strlen(call->operands[i])) != EXIT_OK)
			return EXIT_FAILED;
	return check(call, o);
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

static uint64_t deadline_of(const struct record *o)
{
	return o->timeout ? pp_clock_ns(CLOCK_MONOTONIC) + o->timeout : UINT64_MAX;
}

static int follow_them(struct call *call, const struct record *o,
		       const struct perfpersist_info *infos, size_t n, struct workload *w)
{
	uint64_t until = deadline_of(o);
	struct recording *r;
	int go = 0, code = recording_new(call, infos, n, &o->options, &r);

	if (code != EXIT_OK)
		return code;
	code = workload_start(w);
	if (code != EXIT_OK) {
		recording_free(r);
		return code;
	}
	while (go == 0 && !signals_caught() && !workload_ended(w) &&
	       pp_clock_ns(CLOCK_MONOTONIC) < until) {
		go = recording_go_on(r);
		if (go == 0 && signals_take(SIGUSR2) && o->on_signal)
			go = recording_switch(r);
		if (go == 0)
			recording_wait(r, until);
	}
	code = go < 0 ? EXIT_FAILED : recording_finish(r);
	recording_free(r);
	return code;
}

/* -k: they have been read. */
static int kill_them(struct perfpersist *p, const struct perfpersist_info *infos, size_t n)
{
	int code = EXIT_OK;

	for (size_t i = 0; i < n; i++) {
		struct perfpersist_info info = { .sz = sizeof(info) };
		int r = perfpersist_delete_by_id(p, infos[i].id, &info);

		if (r < 0 && r != -ENOENT)
			code = call_failed(p, r);
	}
	return code;
}

static int read_them(struct call *call, struct perfpersist *p, struct record *o, struct workload *w)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int code = find_events(call, p, o->names, o->n_names, &infos, &n);

	if (code != EXIT_OK)
		return code;
	signals_catch();
	signals_catch_also(SIGUSR2);
	signals_catch_also(SIGCHLD);
	o->options.past = o->selection.last || o->selection.since;
	selection_settle(&o->selection, 0, pp_clock_ns(CLOCK_MONOTONIC));
	if (o->overwrite)
		code = overwrite(call, p, o->names, o->n_names, &o->selection, o->options.output,
				 deadline_of(o), w);
	else
		code = follow_them(call, o, infos, n, w);
	if (code == EXIT_OK && o->kill)
		code = kill_them(p, infos, n);
	return code;
}

static int run_over(struct call *call, struct record *o)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(workload_done) struct workload w = WORKLOAD_NONE;
	int r = workload_prepare(&w, call->command);

	if (r == EXIT_OK)
		r = call_connect(call, &p);
	if (r)
		return r;
	if (!o->make.ns)
		return read_them(call, p, o, &w);
	r = make_events(call, p, &o->make);
	return r == EXIT_OK ? workload_run(&w) : r;
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(record_done) struct record o = {
		.options = { .argc = argc, .argv = argv },
		.names = calloc((size_t)argc, sizeof(char *)),
		.make.opts.sz = sizeof(o.make.opts),
	};
	int opt, r;

	o.options.selection = &o.selection;
	r = o.names ? options_start(call, argc, argv, "e:P:ko:am:c:F:g" SELECTION_SHORTS, longs)
		    : -ENOMEM;
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0) {
		r = take_option(call, opt, &o);
		if (r)
			return r;
		/* As with perf: record -e persistent/web/ -a sleep 10. Behind names it is "--". */
		call->command_follows = o.n_names || o.make.ns;
	}
	if (opt < 0)
		return call->code;
	r = take_operands(call, &o);
	if (r)
		return r;
	if (!o.options.output)
		o.options.output = "perf.data";
	return run_over(call, &o);
}

const struct verb verb_record = {
	.name = "record",
	.synopsis =
		"NAME... | -e persistent/NAMESPACE/ | -e EVENT -P NAMESPACE [OPTIONS] [-- COMMAND]",
	.summary = "follow events into a perf.data file",
	.run = run,
	.runs_command = true,
	.help = "  -o, --output FILE        else perf.data; `-`: to stdout, in perf's pipe format\n"
		"  --timeout TIME           for so long: 10s, 500ms, 2m; else until COMMAND ends, or\n"
		"                           a signal (Ctrl-C)\n"
		"  --max-size SIZE          or until so much is written: 100M\n"
		"  --history                begin with what the buffers hold already\n"
		"  --last TIME              begin with what they hold of so long ago\n"
		"  --since TIME             begin with what they hold from then on\n"
		"  --until TIME             leave out what is later\n"
		"  -C, --cpu LIST           only what is of these CPUs: 0-3,8\n"
		"  --pid PID,...            only records by these processes\n"
		"  --tid TID,...            only records by these threads\n"
		"  --switch-output[=WHEN]   go on in another file, FILE.DATE, after a size (100M), a\n"
		"                           time (30s), or with SIGUSR2 (`signal`, the default)\n"
		"  --switch-max-files N     remove the oldest of them beyond N\n"
		"  --overwrite              follow nothing: with SIGUSR2, and at the end, write what\n"
		"                           the buffers hold to FILE.DATE\n"
		"  -k, --kill               delete the events afterwards\n"
		"  -e, --event EVENT        persistent/NAMESPACE/: the events of that namespace, with\n"
		"                           what they hold; any other: to be made, with -P\n"
		"  -P, --persistent NS      make a persistent event of each -e in this namespace;\n"
		"                           they stay, and a COMMAND is run\n"
		"  -a, --all-cpus           of what is made: on all CPUs; the default\n"
		"  -m, --mmap-pages SIZE    of what is made: as `perfctl create` has it, as all these\n"
		"  -c, --count PERIOD\n"
		"  -F, --freq FREQ\n"
		"  -g                       with call chains\n"
		"  --filter FILTER          for the -e before it\n"
		"\n"
		"NAME is NAMESPACE/NAME, NAMESPACE/ or a glob of these. Records that were overwritten\n"
		"before they could be read are counted, and stand in the file as lost ones.\n"
		"\n"
		"Examples:\n"
		"  perfctl record switches -o sw.data --timeout 10s\n"
		"  perfctl record 'web/*' --switch-output=1m --switch-max-files 10\n"
		"  perfctl record -e sched:sched_switch -e cpu-clock -a -P web\n"
		"  perfctl record -e persistent/web/ -a -k sleep 10\n",
};
