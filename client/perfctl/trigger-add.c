// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl trigger add: creates a trigger. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/events/user-program.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/trigger.h"
#include "proto/window.h"

#define BUFFER (64 * 1024) /* of each CPU, for what fires: hundreds of records */
#define WAIT_MS 1024	   /* in steps up to this: two seconds for the targets */

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
					 "%s: a trigger's targets are in its own namespace, %s",
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
	trigger_print_on(stdout, a->make.events[0].event, a->until ? a->make.events[1].event : "",
			 a->rate ?: "");
	if (a->until) {
		fputs(" with ", stdout);
		trigger_print_pair(stdout, a->key, a->longer_than);
	}
	if (info->filter[0]) {
		fputs(" if ", stdout);
		print_text(stdout, info->filter, strlen(info->filter));
	}
	printf(" and %s%s%s\n", trigger_effects[a->action], *targets ? " " : "", targets);
}

/* Its count of targets, and of those that it would turn now; all, once it has turned one. false: it is gone, or
 * the daemon is. */
static bool count_armed(struct perfpersist *p, const struct perfpersist_info *info, unsigned *ret,
			unsigned *ret_armed)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	size_t n = 0;

	if (perfpersist_triggers(p, info->ns, &all, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (all[i].id == info->id) {
			*ret = MIN(all[i].n_targets, (unsigned)PP_TARGETS_MAX);
			*ret_armed = all[i].fired > all[i].late ? *ret : all[i].n_armed;
			return true;
		}
	return false;
}

/* The daemon arms the targets one after the other. What happens before that fires, and freezes nothing: so
 * that whoever has added a trigger can rely on it, this waits until all are armed, but not for long: what
 * another trigger has frozen can stay frozen. */
static void wait_for_targets(struct perfpersist *p, const struct perfpersist_info *info)
{
	unsigned n = 0, armed = 0;

	for (unsigned ms = 1; ms <= WAIT_MS; ms *= 2) {
		if (!count_armed(p, info, &n, &armed) || armed >= n)
			return;
		usleep(1000 * ms);
	}
	complain("%u of %u targets of %s/%s are armed so far; `perfctl trigger show %s/%s` tells "
		 "when all are",
		 armed, n, info->ns, info->name, info->ns, info->name);
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
		return suggest_recordable(p, r, a->make.events, a->make.n);
	if (a->action != PP_ACTION_NOTIFY)
		wait_for_targets(p, &info);
	tell_added(call, a, &info, targets);
	make_events_note_readers(&info);
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

const struct verb verb_trigger_add = {
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
