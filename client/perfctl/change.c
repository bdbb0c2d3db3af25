// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl change: filter, rate limit or buffer of an event that goes on recording. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

enum {
	OPT_FILTER = 512,
	OPT_COMM,
	OPT_CGROUP,
	OPT_MAX_RATE,
};

struct change {
	struct perfpersist_change_options opts;
	struct filter_options filter;
	char *text;
};

static const struct option longs[] = {
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "pid", required_argument, NULL, 'p' },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "max-rate", required_argument, NULL, OPT_MAX_RATE },
	{ "mmap-pages", required_argument, NULL, 'm' },
	{},
};

static int take_option(struct call *call, int opt, struct change *c)
{
	switch (opt) {
	case 'm':
		c->opts.what |= PERFPERSIST_CHANGE_BUFFER;
		if (parse_buffer_size(optarg, &c->opts.buffer) < 0)
			return bad_usage(call,
					 "-m %s: neither a number of pages nor a size as 512K",
					 optarg);
		return EXIT_OK;
	case OPT_MAX_RATE:
		c->opts.what |= PERFPERSIST_CHANGE_MAX_RATE;
		if (parse_max_rate(optarg, &c->opts.max_rate) < 0)
			return bad_usage(call, "--max-rate %s: not a number of records a second",
					 optarg);
		return EXIT_OK;
	}
	c->opts.what |= PERFPERSIST_CHANGE_FILTER;
	if (opt == OPT_FILTER)
		c->filter.filter = *optarg ? optarg : NULL;
	else if (opt == OPT_COMM)
		c->filter.comm = optarg;
	else if (opt == OPT_CGROUP)
		c->filter.cgroup = optarg;
	else
		c->filter.pids = optarg;
	return EXIT_OK;
}

static int take_operands(struct call *call, struct change *c, struct event_name *ret)
{
	int r;

	if (call->n_operands != 1)
		return bad_usage(call, "change takes one NAME");
	if (parse_event_name(call->operands[0], NULL, ret) < 0)
		return bad_usage(call, "%s: not a name of an event", call->operands[0]);
	if (!c->opts.what)
		return bad_usage(call, "what shall change? --filter, --max-rate or -m is missing");
	r = filter_compose(&c->filter, &c->text);
	if (r == -EINVAL)
		return bad_usage(call, "-p %s: not a list of process ids as 12,34", c->filter.pids);
	if (r < 0) {
		complain("cannot change the event: out of memory");
		return EXIT_FAILED;
	}
	c->opts.filter = c->text;
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
	printf("%s/%s (id %" PRIu64 ") records with buffers of %s", info->ns, info->name, info->id,
	       format_size(info->buffer).s);
	if (info->max_rate)
		printf(", at most %" PRIu64 "/s", info->max_rate);
	if (info->filter[0]) {
		fputs(", filter ", stdout);
		print_text(stdout, info->filter, strlen(info->filter));
	}
	putchar('\n');
}

static void change_done(struct change *c)
{
	free(c->text);
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(change_done) struct change c = { .opts.sz = sizeof(c.opts) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name;
	int opt, r;

	r = options_start(call, argc, argv, "m:p:", longs);
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
	r = perfpersist_change(p, name.ns, name.name, &c.opts, &info);
	if (r < 0)
		return call_failed(p, r);
	report(call, &info);
	return EXIT_OK;
}

const struct verb verb_change = {
	.name = "change",
	.synopsis = "NAME [--filter FILTER] [--max-rate N/s] [-m SIZE]",
	.summary = "change an event while it records",
	.run = run,
	.help = "  --filter FILTER        another filter, for all that is under the name; '': none\n"
		"  -p, --pid PID,...      the same as at creation, together with or instead of it\n"
		"  --comm GLOB\n"
		"  --cgroup PATH\n"
		"  --max-rate N/s         another limit; 0: none\n"
		"  -m, --mmap-pages SIZE  other buffers, which begin empty; who has the old ones\n"
		"                         open keeps what they hold\n"
		"\n"
		"Each record goes by the old or by the new: none is lost, none is there twice.\n"
		"\n"
		"Examples:\n"
		"  perfctl change switches --filter 'prev_pid != 0'\n"
		"  perfctl change switches -m 16M --max-rate 50000/s\n",
};
