// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl snapshots collect, exec: what services run, to write snapshots and to pass them on. */
#include "client/perfctl/events/collect.h"
#include "client/perfctl/events/hook.h"
#include "client/perfctl/snapshots.h"
#include "proto/fired.h"

/* ── collect ────────────────────────────────────────────────────────────────────────────── */

struct collecting {
	struct snapshots place;
	struct collect_options options;
};

static const struct verb_option collect_options[] = {
	{ 0, "max-files", "N", "keep N snapshots at most; default: 100",
	  TAKE_NUMBER(struct collecting, options.limits.files, "not a number above 0"), .min = 1 },
	{ 0, "max-files-of-trigger", "N", "keep N of each trigger at most; default: 50",
	  TAKE_NUMBER(struct collecting, options.limits.files_of_trigger, "not a number above 0"),
	  .min = 1 },
	{ 0, "max-size", "SIZE", "keep so many bytes at most; default: 1G",
	  TAKE_VALUE(struct collecting, options.limits.bytes, parse_size, "not a size such as 1G"),
	  .completes = COMPLETE_WORDS, .words = "100M 1G 10G" },
	{ 0, "max-age", "TIME", "remove snapshots that are older; default: 720h",
	  TAKE_VALUE(struct collecting, options.limits.age, parse_duration,
		     "not a time such as 24h"),
	  .completes = COMPLETE_WORDS, .words = "24h 168h 720h" },
	{ 0, "once", NULL, "save what is frozen now, and end",
	  TAKE_FLAG(struct collecting, options.once) },
	{ 0, "until-idle", NULL, "end when nothing has come for three seconds",
	  TAKE_FLAG(struct collecting, options.until_idle) },
	{},
};

static int take_triggers(struct call *call, struct event_name **ret)
{
	_cleanup_free_ struct event_name *names = calloc(call->n_operands, sizeof(*names));

	if (!names) {
		complain("cannot read the names of the triggers: out of memory");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &names[i]) < 0)
			return bad_usage(call, "%s: not a valid name", call->operands[i]);
	*ret = TAKE_PTR(names);
	return EXIT_OK;
}

static int run_collect(struct call *call)
{
	_cleanup_free_ struct event_name *triggers = NULL;
	struct collecting c = {
		.options.limits = {
			.files = 100,
			.files_of_trigger = 50,
			.bytes = 1ULL << 30,
			.age = 30 * 24 * 3600 * 1000000000ULL,
		},
	};
	int r;

	if (!options_read(call, &c))
		return call->code;
	r = snapshots_place(call, &c.place);
	if (!r && call->n_operands)
		r = take_triggers(call, &triggers);
	if (r)
		return r;
	c.options.directory = c.place.path;
	c.options.is_spool = !c.place.directory;
	c.options.triggers = triggers;
	c.options.n_triggers = call->n_operands;
	return collect(call, &c.options);
}

const struct verb verb_collect_snapshots = {
	.name = "snapshots collect",
	.synopsis = "[OPTIONS] [TRIGGER...]",
	.summary = "write what triggers freeze into files; a service does this",
	.run = run_collect,
	.options = { { .rows = collect_options },
		     { .rows = snapshots_options, .at = offsetof(struct collecting, place) } },
	.operands = COMPLETE_TRIGGER,
	.help = "Waits for triggers to fire, writes a snapshot of each firing, and gives the frozen\n"
		"buffers back. Beyond a limit it removes the oldest snapshots of the namespace that has\n"
		"most, and never the newest. It runs as root, as the daemon's user, or as a user who may\n"
		"write to the namespaces.\n"
		"\n"
		"With the names of triggers it saves what these freeze, and no others; only so what one with\n"
		"--action freeze has frozen. Of one that is removed the name is `" PP_TRIGGER_REMOVED
		"`.\n"
		"With --once, those that have frozen nothing are reported, and the exit status is 3.\n"
		"\n"
		"Examples:\n"
		"  perfctl snapshots collect --once slow\n",
};

/* ── exec ───────────────────────────────────────────────────────────────────────────────── */

struct exec {
	struct snapshots place;
	struct hook_options options;
};

static const struct verb_option exec_options[] = {
	{ 0, "timeout", "TIME", "kill a command that takes longer; default: 5m",
	  TAKE_VALUE(struct exec, options.timeout, parse_duration, "not a time such as 5m"),
	  .completes = COMPLETE_WORDS, .words = "30s 5m 1h" },
	{ 0, "once", NULL, "for the snapshots that are there, and end",
	  TAKE_FLAG(struct exec, options.once) },
	{},
};

static int run_exec(struct call *call)
{
	struct exec e = { .options.timeout = 300 * 1000000000ULL };
	int r;

	if (!options_read(call, &e))
		return call->code;
	if (!call->command || !call->command[0])
		return bad_usage(call, "give a command behind --");
	r = snapshots_place(call, &e.place);
	if (r)
		return r;
	e.options.directory = e.place.path;
	e.options.command = call->command;
	return hook(&e.options);
}

const struct verb verb_exec_snapshots = {
	.name = "snapshots exec",
	.synopsis = "[OPTIONS] -- COMMAND [ARG...]",
	.summary = "run a command for each snapshot, to upload it; a service does this",
	.run = run_exec,
	.runs_command = true,
	.options = { { .rows = exec_options },
		     { .rows = snapshots_options, .at = offsetof(struct exec, place) } },
	.help = "COMMAND gets the snapshot's path as its last argument, and PERFPERSIST_TRIGGER and others\n"
		"in its environment (`man perfctl`). It runs once for each snapshot, one after the other,\n"
		"and again, after others, where it failed: after a minute, later after up to an hour. The\n"
		"service is perfpersist-on-snapshot; its command is /etc/perfpersist/on-snapshot.\n"
		"\n"
		"Examples:\n"
		"  perfctl snapshots exec -- curl -fsS https://perf.example/put -T\n",
};
