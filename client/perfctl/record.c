// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl record: follows events into perf.data files, until a time, a size, a signal or a
 * command's end. With -e EVENT -P NAMESPACE it creates events, as perf record was to create them.
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

struct record {
	struct make_events make; /* -P and what belongs to it */
	char **names;		 /* of the events to read */
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

/* Takes name over, which may be NULL: no memory. */
static int add_name(struct record *o, char *name)
{
	o->names[o->n_names++] = name;
	return name ? EXIT_OK : EXIT_FAILED;
}

/* An existing event, or one to create. */
static int take_event(const struct given *g)
{
	struct record *o = g->to;
	char *name;
	int r = parse_persistent(g->value, &name);

	if (r == -EINVAL)
		return refuse(g, PERSISTENT_HINT);
	if (r < 0)
		return EXIT_FAILED;
	if (!name)
		return make_events_event(g->call, &o->make, g->value);
	/* As with perf: record -e persistent/web/ -a sleep 10. After names, "--" precedes it. */
	g->call->command_follows = true;
	/* The user asks for the records that these buffers hold. */
	o->options.history = true;
	return add_name(o, name);
}

static int take_persistent(const struct given *g)
{
	g->call->command_follows = true;
	return take_namespace(g);
}

/* As in perf: nothing or `signal`, a size, a time. */
static int take_switch(const struct given *g)
{
	struct record *o = g->to;
	const char *unit = g->value ? g->value + strspn(g->value, "0123456789.") : NULL;
	int r;

	o->options.switches = true;
	if (!g->value || !strcmp(g->value, "signal")) {
		o->on_signal = true;
		return EXIT_OK;
	}
	if (*unit && strchr("BKMG", *unit))
		r = parse_size(g->value, &o->options.switch_size);
	else
		r = *unit ? parse_duration(g->value, &o->options.switch_time) : -EINVAL;
	return r < 0 ? refuse(g, "neither `signal`, a size such as 100M, nor a time such as 30s")
		     : EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'o', "output", "FILE",
	  "the output file; default: perf.data; `-`: stdout, in perf's pipe format",
	  TAKE_TEXT(struct record, options.output), .completes = COMPLETE_FILE },
	{ 0, "timeout", "TIME",
	  "stop after 10s, 500ms, 2m; default: when COMMAND ends, or on a signal (Ctrl-C)",
	  TAKE_VALUE(struct record, timeout, parse_duration, "not a time such as 10s or 500ms") },
	{ 0, "max-size", "SIZE", "stop when so much is written: 100M",
	  TAKE_VALUE(struct record, options.max_size, parse_size, "not a size such as 100M") },
	{ 0, "history", NULL, "begin with the records that the buffers hold already",
	  TAKE_FLAG(struct record, options.history) },
	{ 0, "switch-output", "[WHEN]",
	  "switch to a new file, FILE.DATE, after a size (100M), a time (30s), or on SIGUSR2 "
	  "(`signal`, the default)",
	  .take = take_switch },
	{ 0, "switch-max-files", "N", "keep the newest N of these files, remove older ones",
	  TAKE_NUMBER(struct record, options.max_files, "not a number above 0"), .min = 1 },
	{ 0, "overwrite", NULL,
	  "do not follow; write the buffers' records to FILE.DATE on SIGUSR2 and at the end",
	  TAKE_FLAG(struct record, overwrite) },
	{ 'k', "kill", NULL, "delete the events afterwards", TAKE_FLAG(struct record, kill) },
	{ 'e', "event", "EVENT",
	  "persistent/NAMESPACE/: the events of that namespace, with the records they hold; any "
	  "other EVENT is created, with -P",
	  .take = take_event, .completes = COMPLETE_EVENT },
	{},
};

static const struct verb_option making_options[] = {
	{ 'P', "persistent", "NS",
	  "create a persistent event for each -e in this namespace, then run COMMAND; they stay",
	  .take = take_persistent, .to = MEMBER(struct make_events, ns, const char *),
	  .completes = COMPLETE_NAMESPACE },
	{},
};

static int check(struct call *call, struct record *o)
{
	if (o->make.n && !o->make.ns)
		return bad_usage(
			call,
			"-e %s creates an event: -P NAMESPACE is missing; to read existing "
			"events, give NAME or -e persistent/NAMESPACE/",
			o->make.events[0].event);
	if (o->make.ns && !o->make.n)
		return bad_usage(call, "-P %s has nothing to create: -e EVENT is missing",
				 o->make.ns);
	if (o->make.ns && (o->n_names || call->n_operands))
		return bad_usage(
			call,
			"-P creates events, NAME or -e persistent/ reads them: give one of these");
	if (o->make.ns && (o->kill || o->overwrite || o->options.switches || o->options.output))
		return bad_usage(call, "-P only creates events; -k, -o, --overwrite and "
				       "--switch-output are for reading them");
	if (o->make.ns && (selection_has_ids(&o->selection) || o->selection.last ||
			   o->selection.since || o->selection.until))
		return bad_usage(
			call,
			"-P only creates events; --pid, --tid, --last, --since and --until are "
			"for reading them (--filter 'common_pid == N' is for creating them)");
	if (!o->make.ns && (o->make.opts.buffer || o->make.opts.period || o->make.opts.flags))
		return bad_usage(call, "-m, -c, -F and -g are for creating events: -P is missing");
	if (call->command && !call->command[0])
		return bad_usage(call, "-- needs a command after it");
	if (o->options.output && !strcmp(o->options.output, "-") &&
	    (o->options.switches || o->overwrite))
		return bad_usage(
			call, "-o - writes one stream; --switch-output and --overwrite need files");
	if (o->options.max_files && !o->options.switches)
		return bad_usage(call, "--switch-max-files needs --switch-output");
	if (o->overwrite && (o->options.switch_size || o->options.switch_time))
		return bad_usage(call, "with --overwrite, --switch-output takes no size or time");
	if (call->connect.direct && o->kill)
		return bad_usage(
			call, "-k needs the daemon, which deletes the events; leave --direct out");
	return EXIT_OK;
}

static int take_operands(struct call *call, struct record *o)
{
	for (size_t i = 0; i < call->n_operands; i++)
		if (add_name(o, strdup(call->operands[i])) != EXIT_OK)
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
	code = recording_finish(r);
	recording_free(r);
	return code;
}

/* For -k, after they have been read. */
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
	/* Who is told on stderr may be gone before the records are. */
	signal(SIGPIPE, SIG_IGN);
	if (!o->overwrite) /* each snapshot has a moment of its own */
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

static int run(struct call *call)
{
	_cleanup_(record_done) struct record o = {
		.names = calloc((size_t)call->argc, sizeof(char *)),
		.make.opts.sz = sizeof(o.make.opts),
	};
	int r;

	if (!o.names)
		return EXIT_FAILED;
	o.options.selection = &o.selection;
	if (!options_read(call, &o))
		return call->code;
	o.make.opts.cpus = o.selection.cpu_list;
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
	.options = { { .rows = options },
		     { .rows = selection_options, .at = offsetof(struct record, selection) },
		     { .rows = making_options,
		       .at = offsetof(struct record, make),
		       .title = "To create events:" },
		     { .rows = make_events_options, .at = offsetof(struct record, make) } },
	.operands = COMPLETE_NAMES,
	.runs_command = true,
	.help = "With --last or --since, record begins with the buffers' records of that time.\n"
		"\n"
		"NAME is NAMESPACE/NAME, NAMESPACE/ or a glob of these. The file counts\n"
		"records that were overwritten before they could be read as lost.\n"
		"\n"
		"Examples:\n"
		"  perfctl record switches -o sw.data --timeout 10s\n"
		"  perfctl record 'web/*' --switch-output=1m --switch-max-files 10\n"
		"  perfctl record -e sched:sched_switch -e cpu-clock -a -P web\n"
		"  perfctl record -e persistent/web/ -a -k sleep 10\n",
};
