// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl create: a new event. Only what stands on the command line is checked here. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

#define SELECTIONS_MAX 16

enum {
	OPT_FILTER = 512, /* above all letters and the global options */
	OPT_COMM,
	OPT_CGROUP,
	OPT_MAX_RATE,
	OPT_SHARE,
	OPT_NO_SHARE,
	OPT_WAKEUP,
	OPT_BOOT,
};

struct create {
	const char *ns;
	bool all_cpus;
	struct perfpersist_create_options opts;
	struct perfpersist_selection selections[SELECTIONS_MAX];
	struct filter_options who; /* pids, comm and cgroup, for all selections */
	char *filters[SELECTIONS_MAX];
};

static const struct option longs[] = {
	{ "namespace", required_argument, NULL, 'n' },
	{ "event", required_argument, NULL, 'e' },
	{ "all-cpus", no_argument, NULL, 'a' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "mmap-pages", required_argument, NULL, 'm' },
	{ "count", required_argument, NULL, 'c' },
	{ "freq", required_argument, NULL, 'F' },
	{ "generic", no_argument, NULL, 'G' },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "pid", required_argument, NULL, 'p' },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "max-rate", required_argument, NULL, OPT_MAX_RATE },
	{ "share", no_argument, NULL, OPT_SHARE },
	{ "no-share", no_argument, NULL, OPT_NO_SHARE },
	{ "wakeup", no_argument, NULL, OPT_WAKEUP },
	{ "boot", no_argument, NULL, OPT_BOOT },
	{},
};

static int take_rate(struct call *call, int opt, struct perfpersist_create_options *o)
{
	if (o->period)
		return bad_usage(call, "-c and -F: an event has one of them, once");
	if (parse_number(optarg, &o->period) < 0 || !o->period)
		return bad_usage(call, "-%c %s: not a number above 0", opt, optarg);
	if (opt == 'F')
		o->flags |= PERFPERSIST_FREQ;
	return EXIT_OK;
}

static int take_event(struct call *call, struct create *c)
{
	if (c->opts.n_selections == SELECTIONS_MAX)
		return bad_usage(call,
				 "-e %s: %d times -e is the most; several events can stand "
				 "behind one, with commas",
				 optarg, SELECTIONS_MAX);
	if (!*optarg)
		return bad_usage(call, "-e: the event is empty");
	c->selections[c->opts.n_selections++].event = optarg;
	return EXIT_OK;
}

/* As perf: a filter is for the -e before it. */
static int take_filter(struct call *call, struct create *c)
{
	struct perfpersist_selection *s;

	if (!c->opts.n_selections)
		return bad_usage(call, "--filter %s: it belongs behind the -e that it is for",
				 optarg);
	s = &c->selections[c->opts.n_selections - 1];
	if (s->filter)
		return bad_usage(call, "--filter %s: one for each -e; write (A) && (B)", optarg);
	s->filter = optarg;
	return EXIT_OK;
}

static int take_flag(struct call *call, int opt, struct create *c)
{
	switch (opt) {
	case OPT_SHARE:
		c->opts.flags |= PERFPERSIST_SHARE;
		break;
	case OPT_NO_SHARE:
		c->opts.flags |= PERFPERSIST_NO_SHARE;
		break;
	case OPT_WAKEUP:
		c->opts.flags |= PERFPERSIST_WAKEUP;
		break;
	case OPT_BOOT:
		c->opts.flags |= PERFPERSIST_BOOT;
		break;
	case 'G':
		c->opts.flags |= PERFPERSIST_GENERIC;
		break;
	default: /* g */
		c->opts.flags |= PERFPERSIST_CALLCHAIN;
		break;
	}
	if (c->opts.flags & PERFPERSIST_SHARE && c->opts.flags & PERFPERSIST_NO_SHARE)
		return bad_usage(call, "--share and --no-share: one of them");
	return EXIT_OK;
}

static int take_option(struct call *call, int opt, struct create *c)
{
	switch (opt) {
	case 'n':
		c->ns = optarg;
		if (!name_is_valid(optarg))
			return bad_usage(call, "-n %s: not a name of a namespace", optarg);
		return EXIT_OK;
	case 'e':
		return take_event(call, c);
	case OPT_FILTER:
		return take_filter(call, c);
	case 'p':
		c->who.pids = optarg;
		return EXIT_OK;
	case OPT_COMM:
		c->who.comm = optarg;
		return EXIT_OK;
	case OPT_CGROUP:
		c->who.cgroup = optarg;
		return EXIT_OK;
	case OPT_MAX_RATE:
		if (parse_max_rate(optarg, &c->opts.max_rate) < 0 || !c->opts.max_rate)
			return bad_usage(call, "--max-rate %s: not a number of records a second",
					 optarg);
		return EXIT_OK;
	case 'a':
		c->all_cpus = true;
		return EXIT_OK;
	case 'C':
		if (!*optarg)
			return bad_usage(call, "-C: the list of CPUs is empty");
		c->opts.cpus = optarg;
		return EXIT_OK;
	case 'm':
		if (parse_buffer_size(optarg, &c->opts.buffer) < 0)
			return bad_usage(call,
					 "-m %s: neither a number of pages nor a size as 512K",
					 optarg);
		return EXIT_OK;
	case 'c':
	case 'F':
		return take_rate(call, opt, &c->opts);
	default:
		return take_flag(call, opt, c);
	}
}

/* Each selection's filter, with what is asked for of who is recorded. */
static int compose_filters(struct call *call, struct create *c)
{
	for (size_t i = 0; i < c->opts.n_selections; i++) {
		struct filter_options o = c->who;
		int r;

		o.filter = c->selections[i].filter;
		r = filter_compose(&o, &c->filters[i]);
		if (r == -EINVAL)
			return bad_usage(call, "-p %s: not a list of process ids as 12,34", o.pids);
		if (r < 0) {
			complain("cannot create the event: out of memory");
			return EXIT_FAILED;
		}
		c->selections[i].filter = c->filters[i];
	}
	return EXIT_OK;
}

static void create_done(struct create *c)
{
	for (size_t i = 0; i < SELECTIONS_MAX; i++)
		free(c->filters[i]);
}

static int take_operands(struct call *call, const struct create *c, struct event_name *ret)
{
	if (!call->n_operands)
		return bad_usage(call, "the event needs a NAME");
	if (call->n_operands > 1)
		return bad_usage(call, "%s: one event has one NAME", call->operands[1]);
	if (!c->opts.n_selections)
		return bad_usage(call, "what shall %s record? -e EVENT is missing",
				 call->operands[0]);
	if (c->all_cpus && c->opts.cpus)
		return bad_usage(call, "-a and -C: all CPUs or some");
	if (c->ns && strchr(call->operands[0], '/'))
		return bad_usage(call, "-n %s and %s: one namespace", c->ns, call->operands[0]);
	if (parse_event_name(call->operands[0], c->ns, ret) < 0)
		return bad_usage(call, "%s: not a name (letters, digits, _ and -, at most 63)",
				 call->operands[0]);
	return EXIT_OK;
}

static void report(const struct call *call, const struct perfpersist_info *info)
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
	printf(" on CPUs %s, %s each", info->cpus, format_size(info->buffer).s);
	if (info->shares)
		printf("; it shares the buffers of id %" PRIu64, info->shares);
	putchar('\n');
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(create_done) struct create c = { .opts.sz = sizeof(c.opts) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name;
	int opt, r;

	r = options_start(call, argc, argv, "n:e:aC:m:c:F:gp:", longs);
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0) {
		r = take_option(call, opt, &c);
		if (r)
			return r;
	}
	if (opt < 0)
		return call->code;
	r = take_operands(call, &c, &name);
	if (r)
		return r;
	r = compose_filters(call, &c);
	if (r)
		return r;
	c.opts.selections = c.selections;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_create(p, name.ns, name.name, &c.opts, &info);
	if (r < 0)
		return call_failed(p, r);
	report(call, &info);
	return EXIT_OK;
}

const struct verb verb_create = {
	.name = "create",
	.synopsis = "[OPTIONS] NAME -e EVENT [--filter FILTER] [-e EVENT ...]",
	.summary = "create an event; it records from then on",
	.run = run,
	.help = "  -e, --event EVENT       what to record, as perf writes it: SYSTEM:NAME of a\n"
		"                          tracepoint, cycles:u, LLC-load-misses, r1a8,\n"
		"                          cpu/event=0x3c/, mem:ADDRESS:w, kprobe:FUNCTION,\n"
		"                          uprobe:FILE:FUNCTION(size=arg1), usdt:FILE:NAME; several\n"
		"                          with commas, a glob as 'raw_syscalls:*', or several -e:\n"
		"                          they share the name's buffers\n"
		"  --filter FILTER         only what fits, of the -e before it, as perf and ftrace\n"
		"                          write it: 'prev_pid != 0 && comm ~ \"nginx*\"'\n"
		"  -p, --pid PID,...       only of these processes\n"
		"  --comm GLOB             only of tasks with such a name\n"
		"  --cgroup PATH           only of this cgroup and those in it\n"
		"  --max-rate N/s          at most N records a second on a CPU; others are counted\n"
		"  -n, --namespace NS      the namespace of a bare NAME; else `default`\n"
		"  -a, --all-cpus          on all CPUs that are online: the default\n"
		"  -C, --cpu LIST          only on these: 0-3,8\n"
		"  -m, --mmap-pages SIZE   of each CPU's buffer: pages; with B, K, M, G a size;\n"
		"                          rounded up to a power of two; else 512K\n"
		"  -c, --count PERIOD      sampling: a record every PERIOD events\n"
		"  -F, --freq FREQ         sampling: FREQ records a second; else 4000\n"
		"  -g                      sampling: with kernel and user call chains\n"
		"  --share                 a second name for an equal event, if one records already\n"
		"  --no-share              not even if the daemon is configured to\n"
		"  --wakeup                readers may ask to be woken by each record: for rare ones\n"
		"  --boot                  write it down as well, to be there after a reboot\n"
		"  --generic               tracepoints: the generic recorder, even where a faster\n"
		"                          one is there\n"
		"\n"
		"Examples:\n"
		"  perfctl create switches -e sched:sched_switch -m 4M\n"
		"  perfctl create web/profile -e cpu-clock -F 999 -g -C 0-3\n"
		"  perfctl create calls -e 'raw_syscalls:*' --comm 'nginx*' --max-rate 10000/s\n",
};
