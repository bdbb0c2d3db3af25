// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl create: creates an event. Checks only the command line; the daemon checks the rest. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/events/user-program.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

#define SELECTIONS_MAX 16

struct create {
	struct make_events make;
	struct filter_options who; /* pids, comm and cgroup, for all selections */
	char *filters[SELECTIONS_MAX];
	const char *bpf;
	struct user_program program;
	const char *tid, *cgroup; /* -t, -G */
	bool no_inherit;
	const char *on_exit;
};

static int take_event(const struct given *g)
{
	return make_events_event(g->call, g->to, g->value);
}

static int take_on_exit(const struct given *g)
{
	if (strcmp(g->value, "keep") != 0 && strcmp(g->value, "delete") != 0)
		return refuse(g, "neither keep nor delete");
	*(const char **)g->to = g->value;
	return EXIT_OK;
}

static const struct verb_option target_options[] = {
	{ 't', "tid", "TID", "record one thread, and what it creates from then on",
	  TAKE_TEXT(struct create, tid), .completes = COMPLETE_PIDS },
	{ 'G', NULL, "CGROUP",
	  "record one cgroup, or unit of systemd, and those below it, by perf events of its own: the "
	  "rest of the machine does not pay",
	  TAKE_TEXT(struct create, cgroup), .completes = COMPLETE_CGROUP },
	{ 0, "no-inherit", NULL, "with -p and -t: without what the task creates from then on",
	  TAKE_FLAG(struct create, no_inherit) },
	{ 0, "on-exit", "WHAT",
	  "with -p, -t and -G: `keep` the event when the task ends or the cgroup is removed (the "
	  "default), or `delete` it",
	  .take = take_on_exit, .to = MEMBER(struct create, on_exit, const char *),
	  .completes = COMPLETE_WORDS, .words = "keep delete" },
	{},
};

static const struct verb_option options[] = {
	{ 'e', "event", "EVENT",
	  "the event to record, in perf's syntax: SYSTEM:NAME of a tracepoint, cycles:u, "
	  "LLC-load-misses, r1a8, cpu/event=0x3c/, mem:ADDRESS:w, kprobe:FUNCTION, "
	  "uprobe:FILE:FUNCTION(size=arg1), usdt:FILE:NAME; several with commas, a glob such as "
	  "'raw_syscalls:*', or several -e share the buffers of one NAME",
	  .take = take_event, .to = offsetof(struct create, make), .completes = COMPLETE_EVENT },
	{ 'n', "namespace", "NS", "the namespace of a NAME that has none; default: `default`",
	  .take = take_namespace, .to = MEMBER(struct create, make.ns, const char *),
	  .completes = COMPLETE_NAMESPACE },
	{ 'C', "cpu", "LIST", "record only on these CPUs: 0-3,8",
	  TAKE_TEXT(struct create, make.opts.cpus), .completes = COMPLETE_CPUS },
	{ 0, "bpf", "OBJ.o[:PROGRAM]",
	  "let this BPF program decide which records are written; see docs/bpf.md",
	  TAKE_TEXT(struct create, bpf), .completes = COMPLETE_FILE },
	{},
};

static int take_checkpoint(const struct given *g)
{
	struct perfpersist_create_options *o = g->to;
	uint32_t seconds;

	if (parse_interval(g->value, &seconds) < 0 || !seconds)
		return refuse(g, NULL);
	o->flags |= PERFPERSIST_CHECKPOINT(seconds);
	return EXIT_OK;
}

static const struct verb_option more_options[] = {
	{ 0, "max-rate", "N/s", "record at most N a second on each CPU, and count the rest",
	  TAKE_VALUE(struct make_events, opts.max_rate, parse_max_rate, NOT_A_RATE), .min = 1,
	  .completes = COMPLETE_WORDS, .words = RATES },
	{ 0, "checkpoint", "TIME",
	  "write what is new to disk so often, for the time after a crash of the machine",
	  .take = take_checkpoint, .to = offsetof(struct make_events, opts),
	  .refusal = NOT_AN_INTERVAL, .completes = COMPLETE_WORDS, .words = INTERVALS },
	{ 0, "share", NULL, "if an equal event already records, give it a second name",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_SHARE) },
	{ 0, "no-share", NULL, "do not share, even if the daemon is configured to share",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_NO_SHARE) },
	{ 0, "wakeup", NULL, "let readers ask to be woken by each record; for rare events",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_WAKEUP) },
	{ 0, "boot", NULL, "also write it to disk, so that it exists again after a reboot",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_BOOT) },
	{ 0, "generic", NULL, "for tracepoints: the generic recorder, even if a faster one exists",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_GENERIC) },
	{},
};

/* ── the target ─────────────────────────────────────────────────────────────────────────── */

static int take_task(struct call *call, char option, const char *text,
		     struct perfpersist_create_options *o)
{
	uint64_t number;

	if (parse_number(text, &number) < 0 || !number || number > INT32_MAX)
		return bad_usage(call,
				 option == 'p' ? "-p %s: not a list of process ids such as 12,34"
					       : "-t %s: not the id of a thread",
				 text);
	o->target = option == 'p' ? PERFPERSIST_TARGET_PROCESS : PERFPERSIST_TARGET_THREAD;
	o->target_pid = (uint32_t)number;
	return EXIT_OK;
}

static int check_target(struct call *call, const struct create *c, bool is_bound)
{
	const char *pids = c->who.pids;

	if (!!pids + !!c->tid + !!c->cgroup > 1)
		return bad_usage(call, "-p, -t and -G are mutually exclusive");
	if (is_bound || (!c->no_inherit && !c->on_exit))
		return EXIT_OK;
	if (pids)
		return bad_usage(
			call,
			"-p %s: this is a filter, which knows neither children nor an end; "
			"give one process",
			pids);
	return bad_usage(call, "%s is for -p, -t and -G",
			 c->no_inherit ? "--no-inherit" : "--on-exit");
}

/* One process is bound, if its events can be. Several are a filter, and so is 0, the CPUs' idle tasks. */
static int take_target(struct call *call, struct create *c)
{
	struct perfpersist_create_options *o = &c->make.opts;
	bool is_process = c->who.pids && !strchr(c->who.pids, ',') && strcmp(c->who.pids, "0") != 0;
	int r = check_target(call, c, is_process || c->tid || c->cgroup);

	if (r == EXIT_OK && is_process) {
		r = take_task(call, 'p', c->who.pids, o);
		c->who.pids = NULL;
	} else if (r == EXIT_OK && c->tid) {
		r = take_task(call, 't', c->tid, o);
	} else if (r == EXIT_OK && c->cgroup) {
		o->target = PERFPERSIST_TARGET_CGROUP;
		o->target_cgroup = c->cgroup;
	}
	if (c->no_inherit)
		o->target_flags |= PERFPERSIST_TARGET_NO_INHERIT;
	if (c->on_exit && !strcmp(c->on_exit, "delete"))
		o->target_flags |= PERFPERSIST_TARGET_DELETE;
	if (is_process && !o->target_flags)
		o->target_flags = PERFPERSIST_TARGET_OR_FILTER;
	return r;
}

/* Combines each selection's filter with -p, --comm and --cgroup. */
static int compose_filters(struct call *call, struct create *c)
{
	for (size_t i = 0; i < c->make.n; i++) {
		struct filter_options o = c->who;
		int r;

		o.filter = c->make.events[i].filter;
		r = filter_compose(&o, &c->filters[i]);
		if (r == -EINVAL)
			return bad_usage(call, "-p %s: not a list of process ids such as 12,34",
					 o.pids);
		if (r < 0) {
			complain("cannot create the event: out of memory");
			return EXIT_FAILED;
		}
		c->make.events[i].filter = c->filters[i];
	}
	return EXIT_OK;
}

static void create_done(struct create *c)
{
	for (size_t i = 0; i < SELECTIONS_MAX; i++)
		free(c->filters[i]);
	user_program_done(&c->program);
}

static int take_operands(struct call *call, const struct create *c, struct event_name *ret)
{
	const struct perfpersist_create_options *o = &c->make.opts;

	if (!call->n_operands)
		return bad_usage(call, "the event needs a NAME");
	if (call->n_operands > 1)
		return bad_usage(call, "%s: a second NAME; create takes one", call->operands[1]);
	if (!c->make.n)
		return bad_usage(call, "%s has nothing to record: -e EVENT is missing",
				 call->operands[0]);
	if (c->make.n > SELECTIONS_MAX)
		return bad_usage(call,
				 "-e %s: create takes -e at most %d times; one -e can have several "
				 "events, with commas",
				 c->make.events[SELECTIONS_MAX].event, SELECTIONS_MAX);
	if (o->flags & PERFPERSIST_SHARE && o->flags & PERFPERSIST_NO_SHARE)
		return bad_usage(call, "--share and --no-share are mutually exclusive");
	if (o->cpus && !*o->cpus)
		return bad_usage(call, "-C: the list of CPUs is empty");
	return make_events_name(call, &c->make, call->operands[0], ret);
}

static void report(const struct call *call, struct perfpersist *p, bool has_rate,
		   const struct perfpersist_info *info)
{
	if (call->json) {
		struct json j = { .f = stdout };

		info_json(&j, NULL, info);
		putchar('\n');
		return;
	}
	printf("%s/%s (id %" PRIu64 ") records ", info->ns, info->name, info->id);
	print_text(stdout, info->event, strlen(info->event));
	if (info->sources > 1)
		printf(" (%u events)", info->sources);
	if (info->target)
		printf(" of %s", info_target(info).s);
	printf(" on CPUs %s, %s each", info->cpus, format_size(info->buffer).s);
	if (info->shares)
		printf("; it shares the buffers of id %" PRIu64, info->shares);
	if (has_rate && info->sources > 1)
		make_events_print_sampled(p, info);
	putchar('\n');
	make_events_note_readers(info);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(create_done) struct create c = { .make.opts.sz = sizeof(c.make.opts) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name;
	int r;

	if (!options_read(call, &c))
		return call->code;
	r = take_operands(call, &c, &name);
	if (r)
		return r;
	r = take_target(call, &c);
	if (r == EXIT_OK)
		r = compose_filters(call, &c);
	if (r)
		return r;
	if (c.bpf)
		r = user_program_load(c.bpf, &c.program);
	if (r)
		return r;
	c.make.opts.program = c.program.id;
	c.make.opts.selections = c.make.events;
	c.make.opts.n_selections = c.make.n;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_create(p, name.ns, name.name, &c.make.opts, &info);
	if (r < 0)
		return suggest_recordable(p, r, c.make.events, c.make.n);
	report(call, p, c.make.opts.period, &info);
	return EXIT_OK;
}

const struct verb verb_create = {
	.name = "create",
	.synopsis = "[OPTIONS] NAME -e EVENT [--filter FILTER] [-e EVENT ...]",
	.summary = "create an event; it records from then on",
	.run = run,
	.options = { { .rows = options },
		     { .rows = target_options },
		     { .rows = filter_options, .at = offsetof(struct create, who) },
		     { .rows = make_events_options, .at = offsetof(struct create, make) },
		     { .rows = more_options, .at = offsetof(struct create, make) } },
	.operands = COMPLETE_NEW_NAME,
	.one_operand = true,
	.help = "Examples:\n"
		"  perfctl create switches -e sched:sched_switch -m 4M\n"
		"  perfctl create web/profile -e cpu-clock -F 999 -g -C 0-3\n"
		"  perfctl create web/burn -e cpu-clock -F 999 -g -p 4711 --on-exit delete\n"
		"  perfctl create slow -e sched:sched_switch --bpf off-cpu.bpf.o\n"
		"  perfctl create calls -e 'raw_syscalls:*' --comm 'nginx*' --max-rate 10000/s\n",
};
