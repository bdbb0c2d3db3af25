// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl trigger: creates, lists, shows, removes and fires triggers. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/user-program.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "proto/fired.h"
#include "proto/clock.h"
#include "proto/window.h"

#define BUFFER (64 * 1024) /* of each CPU, for what fires: hundreds of records */
#define SECOND 1000000000.0

/* What is done to the targets, as a sentence has it; to notify has none. */
static const char *const effects[PP_ACTIONS] = { "freezes", "freezes", "pauses", "notifies" };

static const char *action_name(uint32_t action)
{
	static const char *const names[PP_ACTIONS] = PP_ACTION_NAMES;

	return action < PP_ACTIONS ? names[action] : "unknown";
}

/* ── add ────────────────────────────────────────────────────────────────────────────────── */

struct add {
	struct make_events make;
	struct filter_options who; /* pids, comm and cgroup */
	uint64_t hold_off, max_per_day;
	bool until; /* the last of make.events */
	const char *key, *rate;
	uint64_t longer_than;
	uint64_t after, after_records;
	unsigned action;
	const char *bpf;
	struct user_program program;
};

static int take_on(const struct given *g)
{
	struct make_events *m = g->to;

	return m->n ? refuse(g, "a trigger has one --on; it can have several events, with commas")
		    : make_events_event(g->call, m, g->value);
}

/* The --filter behind it is its own. */
static int take_until(const struct given *g)
{
	struct add *a = g->to;

	if (a->until)
		return refuse(g,
			      "a trigger has one --until; it can have several events, with commas");
	if (!a->make.n)
		return refuse(g, "it ends what --on EVENT begins, which stands in front of it");
	a->until = true;
	return make_events_event(g->call, &a->make, g->value);
}

static int take_after(const struct given *g)
{
	struct add *a = g->to;
	int r = pp_parse_window(g->value, parse_duration, &a->after, &a->after_records);

	return r < 0 ? refuse(g, "neither a time such as 5ms nor a number of records such as 200r")
		     : EXIT_OK;
}

static const struct verb_option add_options[] = {
	{ 0, "on", "EVENT",
	  "fire when this happens, in the syntax of `perfctl create -e`; each of its records fires, so "
	  "a frequent event needs a --filter",
	  .take = take_on, .to = offsetof(struct add, make), .completes = COMPLETE_EVENT },
	{ 0, "until", "EVENT",
	  "fire when EVENT comes too late after the --on with the same --key, or is missing; a --filter "
	  "behind it is for EVENT",
	  .take = take_until, .completes = COMPLETE_EVENT },
	{ 0, "key", "FIELD[,FIELD]",
	  "the field that --on and --until have in common, or one of each; tid and pid are the current "
	  "task's, unless the event has fields of these names",
	  TAKE_TEXT(struct add, key), .completes = COMPLETE_WORDS, .words = "tid pid" },
	{ 0, "longer-than", "TIME", "too late: so long after it, or longer",
	  TAKE_VALUE(struct add, longer_than, parse_duration, "not a time such as 10ms"),
	  .completes = COMPLETE_WORDS, .words = "1ms 10ms 100ms 1s" },
	{ 0, "rate", "'over N/s for TIME'",
	  "fire when there were more than N matching events in each second of that time, such as "
	  "'over 1000/s for 5s'",
	  TAKE_TEXT(struct add, rate) },
	{ 0, "action", "ACTION",
	  "snapshot (the default): freeze the targets, and a service saves that to a file; freeze: save "
	  "nothing until `snapshots collect` or `trigger release` asks; pause: pause the targets; notify: "
	  "only tell the journal and `perfctl watch`",
	  TAKE_CHOICE(struct add, action, "none of snapshot, freeze, pause and notify"),
	  .words = "snapshot freeze pause notify" },
	{ 0, "hold-off", "TIME",
	  "do not fire again within this time, 10ms or more; such records are counted; default: 10s",
	  TAKE_VALUE(struct add, hold_off, parse_duration, "not a time such as 10s"),
	  .completes = COMPLETE_WORDS, .words = "100ms 1s 10s 1m 10m" },
	{ 0, "after", "TIME|Nr",
	  "the targets go on recording for this time, 1m at most, or until each has N more records "
	  "(within 10s), and what they have then is saved; or both: 200r,1s; default: not at all",
	  .take = take_after, .completes = COMPLETE_WORDS, .words = "5ms 100ms 1s 200r" },
	{ 0, "max-per-day", "N", "fire at most N times in 24 hours; default: no limit",
	  TAKE_NUMBER(struct add, max_per_day, "not a number above 0"), .min = 1 },
	{ 0, "bpf", "OBJ.o[:PROGRAM]",
	  "let this BPF program decide which records are written, and which of them fire; see docs/bpf.md",
	  TAKE_TEXT(struct add, bpf), .completes = COMPLETE_FILE },
	{},
};

/* Targets are in the trigger's namespace, which may be named. */
static int join_targets(struct call *call, const char *ns, char *targets, size_t size)
{
	size_t used = 0, length = strlen(ns);

	for (size_t i = 1; i < call->n_operands; i++) {
		const char *text = call->operands[i];
		int n;

		if (!strncmp(text, ns, length) && text[length] == '/')
			text += length + 1;
		if (strchr(text, '/'))
			return bad_usage(call,
					 "%s: a trigger freezes events of its own namespace, %s",
					 call->operands[i], ns);
		n = snprintf(targets + used, size - used, "%s%s", used ? "," : "",
			     *text ? text : "*");
		if (n < 0 || used + (size_t)n >= size)
			return bad_usage(call,
					 "the names of the targets are too long together; use "
					 "globs");
		used += (size_t)n;
	}
	return EXIT_OK;
}

static int check_targets(struct call *call, const struct add *a)
{
	if (a->action == PP_ACTION_NOTIFY && call->n_operands > 1)
		return bad_usage(call, "--action notify does nothing to %s: give no targets",
				 call->operands[1]);
	if (a->action == PP_ACTION_NOTIFY || call->n_operands > 1)
		return EXIT_OK;
	return bad_usage(call,
			 "%s has nothing to %s: give the names of events, or `*` for all "
			 "of its namespace",
			 call->operands[0], a->action == PP_ACTION_PAUSE ? "pause" : "freeze");
}

static int check_add(struct call *call, const struct add *a, struct event_name *ret)
{
	if (!call->n_operands)
		return bad_usage(call, "the trigger needs a NAME");
	if (parse_event_name(call->operands[0], NULL, ret) < 0)
		return bad_usage(call,
				 "%s: not a valid name (letters, digits, _ and -, at most 63)",
				 call->operands[0]);
	if (!a->make.n)
		return bad_usage(call, "nothing would fire %s: --on EVENT is missing",
				 call->operands[0]);
	if (a->until && (!a->key || !a->longer_than))
		return bad_usage(call, "--until needs --key FIELD and --longer-than TIME");
	if (!a->until && (a->key || a->longer_than))
		return bad_usage(
			call,
			"--key and --longer-than are for two events: --until EVENT is missing");
	if (a->until && a->rate)
		return bad_usage(call, "--until and --rate are mutually exclusive");
	return check_targets(call, a);
}

/* Of two events, or of one at a rate; sentences and tables. */
static void print_on(FILE *f, const char *on, const char *until, const char *rate)
{
	print_text(f, on, strlen(on));
	if (*until) {
		fputs(" until ", f);
		print_text(f, until, strlen(until));
	}
	if (*rate)
		fprintf(f, " %s", rate);
}

static void print_key(FILE *f, const char *key, uint64_t longer_than)
{
	const char *comma = strchr(key, ',');

	if (comma)
		fprintf(f, "%.*s = %s", (int)(comma - key), key, comma + 1);
	else
		fprintf(f, "the same %s", key);
	fprintf(f, ", longer than %g ms", (double)longer_than / 1e6);
}

static void tell_added(const struct call *call, const struct add *a,
		       const struct perfpersist_info *info, const char *targets)
{
	if (call->json) {
		struct json j = { .f = stdout };

		info_json(&j, NULL, info);
		putchar('\n');
		return;
	}
	printf("%s/%s (id %" PRIu64 ") fires on ", info->ns, info->name, info->id);
	print_on(stdout, a->make.events[0].event, a->until ? a->make.events[1].event : "",
		 a->rate ?: "");
	if (a->until) {
		fputs(" with ", stdout);
		print_key(stdout, a->key, a->longer_than);
	}
	if (info->filter[0]) {
		fputs(" if ", stdout);
		print_text(stdout, info->filter, strlen(info->filter));
	}
	printf(" and %s%s%s\n", effects[a->action], *targets ? " " : "", targets);
}

static int add(struct call *call, struct add *a, const struct event_name *name, const char *targets,
	       const char *filter)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	const struct perfpersist_trigger_options o = {
		.sz = sizeof(o),
		.targets = targets,
		.hold_off = a->hold_off,
		.max_per_day = a->max_per_day,
		.after = a->after,
		.after_records = a->after_records,
		.action = a->action,
		.event = &a->make.opts,
		.until = a->until ? a->make.events[1].event : NULL,
		.until_filter = a->until ? a->make.events[1].filter : NULL,
		.key = a->key,
		.longer_than = a->longer_than,
		.rate = a->rate,
	};
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	a->make.events[0].filter = filter;
	a->make.opts.program = a->program.id;
	a->make.opts.selections = a->make.events;
	a->make.opts.n_selections = a->make.n - a->until;
	if (!a->make.opts.buffer)
		a->make.opts.buffer = BUFFER;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_trigger_add(p, name->ns, name->name, &o, &info);
	if (r < 0)
		return call_failed(p, r);
	tell_added(call, a, &info, targets);
	return EXIT_OK;
}

static void add_done(struct add *a)
{
	user_program_done(&a->program);
}

static int run_add(struct call *call)
{
	_cleanup_(add_done) struct add a = { .make.opts.sz = sizeof(a.make.opts) };
	_cleanup_free_ char *filter = NULL;
	struct event_name name;
	char targets[256] = "";
	int r;

	if (!options_read(call, &a))
		return call->code;
	r = check_add(call, &a, &name);
	if (!r)
		r = join_targets(call, name.ns, targets, sizeof(targets));
	if (r)
		return r;
	a.who.filter = a.make.events[0].filter;
	r = filter_compose(&a.who, &filter);
	if (r == -EINVAL)
		return bad_usage(call, "-p %s: not a list of process ids such as 12,34",
				 a.who.pids);
	if (r < 0) {
		complain("cannot create the trigger: out of memory");
		return EXIT_FAILED;
	}
	if (a.bpf)
		r = user_program_load(a.bpf, &a.program);
	return r ? r : add(call, &a, &name, targets, filter);
}

static const struct verb verb_add = {
	.name = "trigger add",
	.synopsis = "NAME --on EVENT [--filter FILTER] [OPTIONS] [TARGET...]",
	.summary = "create a trigger",
	.run = run_add,
	.options = { { .rows = add_options },
		     { .rows = filter_options, .at = offsetof(struct add, who) },
		     { .rows = make_events_options, .at = offsetof(struct add, make) } },
	.operands = COMPLETE_NAME,
	.help = "When EVENT happens, and matches the filter, the kernel freezes what the TARGETs have\n"
		"recorded until then, on all CPUs at once. They go on recording into a second set of\n"
		"buffers, which takes as much memory again. TARGETs are names or globs of events in\n"
		"the trigger's namespace; events that are created later match, too.\n"
		"\n"
		"With --until it fires when the EVENT of --until comes too late, or, within 10 ms, while it\n"
		"is missing. With --rate it fires when EVENT has been that frequent for that time.\n"
		"\n"
		"`perfctl snapshots collect`, a service, saves what is frozen to files. --action says what\n"
		"happens instead.\n"
		"\n"
		"Examples:\n"
		"  perfctl create sched -e 'sched:*' -m 4M\n"
		"  perfctl trigger add oom --on oom:mark_victim sched\n"
		"  perfctl trigger add slow --on uprobe:/usr/bin/app:on_timeout --hold-off 1m '*'\n"
		"  perfctl trigger add late --on sched:sched_waking --until sched:sched_switch \\\n"
		"    --key pid,next_pid --longer-than 10ms sched\n"
		"  perfctl trigger add fsync --on syscalls:sys_enter_fsync \\\n"
		"    --until syscalls:sys_exit_fsync --key tid --longer-than 100ms sched\n"
		"  perfctl trigger add storm --on irq:irq_handler_entry --rate 'over 50000/s for 3s' '*'\n",
};

/* ── list, show ─────────────────────────────────────────────────────────────────────────── */

static const struct column columns[] = {
	{ "ID", true },	      { "NAME", false }, { "ON", false },    { "ACTION", false },
	{ "TARGETS", false }, { "ARMED", true }, { "FIRED", true },  { "HELD", true },
	{ "SPENT", true },    { "LATE", true },	 { "MISSED", true }, { "UNKEPT", true },
	{ "LAST", true },
};

static void missed_cell(struct table *t, const struct perfpersist_trigger *v)
{
	if (v->missed_unknown)
		table_cell(t, "unknown");
	else
		table_cell(t, "%" PRIu64 "%s", v->missed, v->missed_at_least ? "+" : "");
}

static int list_table(const struct perfpersist_trigger *all, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_trigger *v = &all[i];

		table_cell(&t, "%" PRIu64, v->id);
		table_cell(&t, "%s/%s", v->ns, v->name);
		table_cell(&t, "%s%s%s%s%s", v->event, *v->until ? " until " : "", v->until,
			   *v->rate ? " " : "", v->rate);
		table_cell(&t, "%s", action_name(v->action));
		table_cell(&t, "%s", *v->targets ? v->targets : "-");
		table_cell(&t, "%u of %u", v->n_armed, v->n_targets);
		table_cell(&t, "%" PRIu64, v->fired);
		table_cell(&t, "%" PRIu64, v->held);
		table_cell(&t, "%" PRIu64, v->spent);
		table_cell(&t, "%" PRIu64, v->late);
		missed_cell(&t, v);
		table_cell(&t, "%" PRIu64, v->unkept);
		if (v->last)
			table_cell(&t, "%s", format_age(pp_clock_real(v->last)).s);
		else
			table_cell(&t, "never");
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static void trigger_json(struct json *j, const struct perfpersist_trigger *v)
{
	json_begin(j, NULL, '{');
	json_unsigned(j, "id", v->id);
	json_string(j, "namespace", v->ns);
	json_string(j, "name", v->name);
	json_string(j, "event", v->event);
	json_string(j, "filter", v->filter);
	json_string(j, "until", v->until);
	json_string(j, "key", v->key);
	json_unsigned(j, "longer_than", v->longer_than);
	json_string(j, "rate", v->rate);
	json_string(j, "action", action_name(v->action));
	json_string(j, "targets", v->targets);
	json_unsigned(j, "tapes", v->tapes);
	json_unsigned(j, "hold_off", v->hold_off);
	json_unsigned(j, "max_per_day", v->max_per_day);
	json_unsigned(j, "after", v->after);
	json_unsigned(j, "after_records", v->after_records);
	json_bool(j, "paused", v->state == PERFPERSIST_PAUSED);
	json_unsigned(j, "n_targets", v->n_targets);
	json_unsigned(j, "n_armed", v->n_armed);
	json_unsigned(j, "fired", v->fired);
	json_unsigned(j, "held", v->held);
	json_unsigned(j, "spent", v->spent);
	json_unsigned(j, "late", v->late);
	if (v->missed_unknown)
		json_null(j, "missed");
	else
		json_unsigned(j, "missed", v->missed);
	json_bool(j, "missed_at_least", v->missed_at_least);
	json_unsigned(j, "unkept", v->unkept);
	json_unsigned(j, "overdue", v->overdue);
	json_unsigned(j, "ended", v->ended);
	if (v->last)
		json_unsigned(j, "last", pp_clock_real(v->last));
	else
		json_null(j, "last");
	json_end(j, '}');
}

static void show_one(const struct perfpersist_trigger *v)
{
	printf("%s/%s (id %" PRIu64 ")%s\n", v->ns, v->name, v->id,
	       v->state == PERFPERSIST_PAUSED ? ", paused" : "");
	printf("  on        ");
	print_on(stdout, v->event, v->until, v->rate);
	if (*v->until) {
		printf("\n  with      ");
		print_key(stdout, v->key, v->longer_than);
	}
	if (v->filter[0]) {
		fputs("\n  if        ", stdout);
		print_text(stdout, v->filter, strlen(v->filter));
	}
	printf("\n  action    %s", action_name(v->action));
	if (*v->targets)
		printf("\n  %-9s %s: %u event%s, %u of them armed", effects[v->action % PP_ACTIONS],
		       v->targets, v->n_targets, v->n_targets == 1 ? "" : "s", v->n_armed);
	if (v->tapes)
		printf("\n  waits     %" PRIu64 " event%s frozen and neither saved nor released",
		       v->tapes, v->tapes == 1 ? "" : "s");
	putchar('\n');
	printf("  hold-off  %g s\n", (double)v->hold_off / SECOND);
	if (v->after_records)
		printf("  goes on   for %" PRIu64 " records of each, %g s at most\n",
		       v->after_records, (double)v->after / SECOND);
	else if (v->after)
		printf("  goes on   for %g s\n", (double)v->after / SECOND);
	if (v->max_per_day)
		printf("  per day   %" PRIu64 " at most\n", v->max_per_day);
	printf("  fired     %" PRIu64, v->fired);
	if (v->last)
		printf(", last %s ago", format_age(pp_clock_real(v->last)).s);
	printf("\n  not fired %" PRIu64 " within the hold-off, %" PRIu64
	       " beyond the day's number, ",
	       v->held, v->spent);
	if (v->missed_unknown)
		puts("unknown how many missed");
	else
		printf("%" PRIu64 "%s missed\n", v->missed, v->missed_at_least ? "+" : "");
	if (*v->until) {
		printf("  missing   %" PRIu64 " ends, which fired, or not, as if they had come\n",
		       v->overdue);
		printf("  no end    %" PRIu64 " whose task has ended, %" PRIu64
		       " that found no room in the table\n",
		       v->ended, v->unkept);
	}
	printf("  late      %" PRIu64
	       " target%s left alone: not armed, or the last one not saved\n",
	       v->late, v->late == 1 ? "" : "s");
}

static int find_triggers(struct call *call, const char *ns, struct perfpersist_trigger **ret,
			 size_t *ret_n)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int r = call_connect(call, &p);

	if (r)
		return r;
	r = perfpersist_triggers(p, ns, ret, ret_n);
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}

static int run_list(struct call *call)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	struct json j = { .f = stdout };
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = find_triggers(call, call->operands[0], &all, &n);
	if (r)
		return r;
	if (!call->json)
		return list_table(all, n);
	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		trigger_json(&j, &all[i]);
	json_end(&j, ']');
	putchar('\n');
	return EXIT_OK;
}

static const struct verb verb_list_triggers = {
	.name = "trigger list",
	.synopsis = "[NAMESPACE]",
	.summary = "list the triggers",
	.run = run_list,
	.operands = COMPLETE_NAMESPACE,
	.one_operand = true,
	.help = "ARMED: how many of the events that it names it would freeze or pause now.\n"
		"FIRED: how often it fired.\n"
		"HELD: records that did not fire because of the hold-off.\n"
		"SPENT: records that did not fire because of --max-per-day.\n"
		"LATE: targets that it could not freeze or pause, because what was frozen before was not\n"
		"saved yet, or because they are paused.\n"
		"MISSED: occurrences of its event that made no record, and so did not fire.\n"
		"UNKEPT: occurrences of --on for which there was no room, so that their --until cannot fire.\n"
		"LAST: how long ago it fired.\n",
};

static int run_show(struct call *call)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	struct json j = { .f = stdout };
	struct event_name name;
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	if (!call->n_operands || parse_event_name(call->operands[0], NULL, &name) < 0)
		return bad_usage(call, "give the NAME of a trigger");
	r = find_triggers(call, name.ns, &all, &n);
	for (size_t i = 0; !r && i < n; i++)
		if (!strcmp(all[i].name, name.name)) {
			if (!call->json) {
				show_one(&all[i]);
				return EXIT_OK;
			}
			trigger_json(&j, &all[i]);
			putchar('\n');
			return EXIT_OK;
		}
	if (r)
		return r;
	complain("there is no trigger '%s' in the namespace %s; `perfctl trigger list` shows those "
		 "there are",
		 name.name, name.ns);
	return EXIT_NOT_FOUND;
}

static const struct verb verb_show_trigger = {
	.name = "trigger show",
	.synopsis = "NAME",
	.summary = "show a trigger",
	.run = run_show,
	.operands = COMPLETE_NAME,
	.one_operand = true,
	.help = "Prints what `perfctl trigger list` has, its filter and its limits.\n",
};

/* ── remove, fire ───────────────────────────────────────────────────────────────────────── */

/* The exit code is that of the first failure. */
static int for_each(struct call *call,
		    int (*fn)(struct perfpersist *p, const struct event_name *name))
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct event_name name;
	int r, code = EXIT_OK;

	if (!options_read(call, NULL))
		return call->code;
	if (!call->n_operands)
		return bad_usage(call, "give the NAME of a trigger");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &name) < 0)
			return bad_usage(call, "%s: not a valid name", call->operands[i]);
	r = call_connect(call, &p);
	for (size_t i = 0; !r && i < call->n_operands; i++) {
		int failed;

		parse_event_name(call->operands[i], NULL, &name);
		failed = fn(p, &name);
		code = code ?: failed;
	}
	return r ?: code;
}

static int remove_one(struct perfpersist *p, const struct event_name *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = perfpersist_show(p, name->ns, name->name, &info);

	if (r >= 0 && !(info.flags & PERFPERSIST_TRIGGER)) {
		complain("%s/%s is an event and no trigger; `perfctl delete` deletes it", name->ns,
			 name->name);
		return EXIT_FAILED;
	}
	if (r >= 0)
		r = perfpersist_delete_by_id(p, info.id, &info);
	if (r < 0)
		return call_failed(p, r);
	printf("%s/%s (id %" PRIu64 ") is removed\n", info.ns, info.name, info.id);
	return EXIT_OK;
}

static int run_remove(struct call *call)
{
	return for_each(call, remove_one);
}

static const struct verb verb_remove = {
	.name = "trigger remove",
	.synopsis = "NAME...",
	.summary = "remove triggers",
	.run = run_remove,
	.operands = COMPLETE_NAME,
	.help = "What they have frozen is still saved.\n",
};

static int fire_one(struct perfpersist *p, const struct event_name *name)
{
	int r = perfpersist_trigger_fire(p, name->ns, name->name);

	if (r < 0)
		return call_failed(p, r);
	printf("%s/%s has fired\n", name->ns, name->name);
	return EXIT_OK;
}

static int run_fire(struct call *call)
{
	return for_each(call, fire_one);
}

static const struct verb verb_fire = {
	.name = "trigger fire",
	.synopsis = "NAME...",
	.summary = "fire triggers by hand",
	.run = run_fire,
	.operands = COMPLETE_NAME,
	.help = "The hold-off and --max-per-day apply to this, too.\n",
};

/* All that it has frozen, whoever was to save it. */
static int release_one(struct perfpersist *p, const struct event_name *name)
{
	_cleanup_free_ struct perfpersist_tape *tapes = NULL;
	size_t n = 0, released = 0;
	int r = perfpersist_tapes(p, name->ns, &tapes, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (strcmp(tapes[i].trigger_name[0] ? tapes[i].trigger_name : "deleted",
			   name->name) != 0)
			continue;
		r = perfpersist_tape_release(p, tapes[i].id);
		released += r >= 0;
		if (r == -ENOENT) /* somebody was faster */
			r = 0;
	}
	if (r < 0)
		return call_failed(p, r);
	if (!released) {
		complain("%s/%s has frozen nothing that waits", name->ns, name->name);
		return EXIT_NOT_FOUND;
	}
	printf("%s/%s: what %zu event%s had recorded is released\n", name->ns, name->name, released,
	       released == 1 ? "" : "s");
	return EXIT_OK;
}

static int run_release(struct call *call)
{
	return for_each(call, release_one);
}

static const struct verb verb_release = {
	.name = "trigger release",
	.synopsis = "NAME...",
	.summary = "give back what triggers have frozen, without saving it",
	.run = run_release,
	.operands = COMPLETE_NAME,
	.help = "Of a trigger that is removed the name is `deleted`. What one with --action pause has paused,\n"
		"`perfctl resume` resumes.\n",
};

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct verb *const parts[] = {
	&verb_add, &verb_list_triggers, &verb_show_trigger, &verb_remove, &verb_fire, &verb_release,
	NULL,
};

static int run(struct call *call)
{
	return options_read(call, NULL) ? bad_usage(call, "trigger what? %s", verb_trigger.synopsis)
					: call->code;
}

const struct verb verb_trigger = {
	.name = "trigger",
	.synopsis = "add | list | show | remove | fire | release ...",
	.summary = "freeze events when something happens",
	.run = run,
	.parts = parts,
	.operands = COMPLETE_PART,
	.help = "Examples:\n"
		"  perfctl trigger add oom --on oom:mark_victim sched\n"
		"  perfctl trigger list\n"
		"  perfctl trigger fire oom\n",
};
