// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl create: a new event. Only what stands on the command line is checked here. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/info.h"
#include "client/perfctl/perfctl.h"

struct create {
	const char *ns;
	bool all_cpus;
	struct perfpersist_create_options opts;
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

static int take_option(struct call *call, int opt, struct create *c)
{
	switch (opt) {
	case 'n':
		c->ns = optarg;
		if (!name_is_valid(optarg))
			return bad_usage(call, "-n %s: not a name of a namespace", optarg);
		return EXIT_OK;
	case 'e':
		if (c->opts.event)
			return bad_usage(call, "-e %s: an event has one -e", optarg);
		c->opts.event = optarg;
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
	case 'G':
		c->opts.flags |= PERFPERSIST_GENERIC;
		return EXIT_OK;
	default: /* g */
		c->opts.flags |= PERFPERSIST_CALLCHAIN;
		return EXIT_OK;
	}
}

static int take_operands(struct call *call, const struct create *c, struct event_name *ret)
{
	if (!call->n_operands)
		return bad_usage(call, "the event needs a NAME");
	if (call->n_operands > 1)
		return bad_usage(call, "%s: one event has one NAME", call->operands[1]);
	if (!c->opts.event || !*c->opts.event)
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
	printf(" on CPUs %s, %s each\n", info->cpus, format_size(info->buffer).s);
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct create c = { .opts.sz = sizeof(c.opts) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name;
	int opt, r;

	r = options_start(call, argc, argv, "n:e:aC:m:c:F:g", longs);
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
	.synopsis = "[OPTIONS] NAME -e EVENT",
	.summary = "create an event; it records from then on",
	.run = run,
	.help = "  -e, --event EVENT       what to record, as perf writes it: SYSTEM:NAME of a\n"
		"                          tracepoint, cpu-clock, cycles:u, ...\n"
		"  -n, --namespace NS      the namespace of a bare NAME; else `default`\n"
		"  -a, --all-cpus          on all CPUs that are online: the default\n"
		"  -C, --cpu LIST          only on these: 0-3,8\n"
		"  -m, --mmap-pages SIZE   of each CPU's buffer: pages; with B, K, M, G a size;\n"
		"                          rounded up to a power of two; else 512K\n"
		"  -c, --count PERIOD      sampling: a record every PERIOD events\n"
		"  -F, --freq FREQ         sampling: FREQ records a second; else 4000\n"
		"  -g                      with kernel and user call chains\n"
		"  --generic               tracepoints: the generic recorder, even where a faster\n"
		"                          one is there\n"
		"\n"
		"Examples:\n"
		"  perfctl create switches -e sched:sched_switch -m 4M\n"
		"  perfctl create web/profile -e cpu-clock -F 999 -g -C 0-3\n",
};
