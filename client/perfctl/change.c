// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl change: changes the filter, rate limit, period or buffers of an event while it records. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

struct change {
	struct perfpersist_change_options opts;
	struct filter_options filter;
	char *text;
};

/* 0 is a valid value: it removes the limit. */
static int take_max_rate(const struct given *g)
{
	struct perfpersist_change_options *o = g->to;

	o->what |= PERFPERSIST_CHANGE_MAX_RATE;
	return parse_max_rate(g->value, &o->max_rate) < 0 ? refuse(g, NULL) : EXIT_OK;
}

static int take_checkpoint(const struct given *g)
{
	struct perfpersist_change_options *o = g->to;

	o->what |= PERFPERSIST_CHANGE_CHECKPOINT;
	return parse_interval(g->value, &o->checkpoint) < 0 ? refuse(g, NULL) : EXIT_OK;
}

static int take_rate(const struct given *g)
{
	struct perfpersist_change_options *o = g->to;

	o->what |= PERFPERSIST_CHANGE_PERIOD;
	return make_events_rate(g, &o->period, &o->flags);
}

static const struct verb_option options[] = {
	{ 0, "filter", "FILTER", "replace the filter, for all -e of the event; '' removes it",
	  TAKE_TEXT(struct change, filter.filter) },
	{ 0, "max-rate", "N/s", "replace the limit of records a second on a CPU; 0 removes it",
	  .take = take_max_rate, .to = offsetof(struct change, opts), .refusal = NOT_A_RATE,
	  .completes = COMPLETE_WORDS, .words = RATES },
	{ 0, "checkpoint", "TIME",
	  "replace the time between checkpoints, which are for crashes of the machine; 0: none",
	  .take = take_checkpoint, .to = offsetof(struct change, opts), .refusal = NOT_AN_INTERVAL,
	  .completes = COMPLETE_WORDS, .words = INTERVALS },
	{ 'c', "count", "PERIOD", "sampling: a record every PERIOD events from now on",
	  .take = take_rate, .to = offsetof(struct change, opts) },
	{ 'F', "freq", "FREQ", "sampling: FREQ records a second from now on", .take = take_rate,
	  .to = offsetof(struct change, opts), .bits = PERFPERSIST_FREQ,
	  .completes = COMPLETE_WORDS, .words = FREQUENCIES },
	{ 'm', "mmap-pages", "SIZE",
	  "replace the buffers by empty ones of this size; open readers keep the old ones",
	  TAKE_VALUE(struct change, opts.buffer, parse_buffer_size, NOT_A_BUFFER_SIZE),
	  .completes = COMPLETE_WORDS, .words = BUFFER_SIZES },
	{},
};

static int take_operands(struct call *call, struct change *c, struct event_name *ret)
{
	int r;

	if (call->n_operands != 1)
		return bad_usage(call, "change takes one NAME");
	if (parse_event_name(call->operands[0], NULL, ret) < 0)
		return bad_usage(call, "%s: not a valid event name", call->operands[0]);
	if (c->opts.buffer)
		c->opts.what |= PERFPERSIST_CHANGE_BUFFER;
	if (c->filter.filter || c->filter.pids || c->filter.comm || c->filter.cgroup)
		c->opts.what |= PERFPERSIST_CHANGE_FILTER;
	if (!c->opts.what)
		return bad_usage(call,
				 "nothing to change: --filter, --max-rate, --checkpoint, -c, -F or "
				 "-m is missing");
	r = filter_compose(&c->filter, &c->text);
	if (r == -EINVAL)
		return bad_usage(call, "-p %s: not a list of process ids such as 12,34",
				 c->filter.pids);
	if (r < 0) {
		complain("cannot change the event: out of memory");
		return EXIT_FAILED;
	}
	c->opts.filter = c->text;
	return EXIT_OK;
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
	printf("%s/%s (id %" PRIu64 ") records with buffers of %s", info->ns, info->name, info->id,
	       format_size(info->buffer).s);
	if (info->period)
		printf(info->flags & PERFPERSIST_FREQ ? ", %" PRIu64 " samples a second"
						      : ", a sample every %" PRIu64,
		       info->period);
	if (info->max_rate)
		printf(", at most %" PRIu64 "/s", info->max_rate);
	if (PERFPERSIST_CHECKPOINT_OF(info->flags))
		printf(", a checkpoint every %u s", PERFPERSIST_CHECKPOINT_OF(info->flags));
	if (info->filter[0]) {
		fputs(", filter ", stdout);
		print_text(stdout, info->filter, strlen(info->filter));
	}
	if (has_rate && info->sources > 1)
		make_events_print_sampled(p, info);
	putchar('\n');
}

static void change_done(struct change *c)
{
	free(c->text);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(change_done) struct change c = { .opts.sz = sizeof(c.opts) };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct event_name name;
	int r;

	if (!options_read(call, &c))
		return call->code;
	r = take_operands(call, &c, &name);
	if (r)
		return r;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_change(p, name.ns, name.name, &c.opts, &info);
	if (r < 0)
		return suggest_name(p, r, name.ns, name.name);
	report(call, p, c.opts.what & PERFPERSIST_CHANGE_PERIOD, &info);
	return EXIT_OK;
}

const struct verb verb_change = {
	.name = "change",
	.synopsis =
		"NAME [--filter FILTER] [--max-rate N/s] [--checkpoint TIME] [-c PERIOD | -F FREQ] "
		"[-m SIZE]",
	.summary = "change an event while it records",
	.run = run,
	.options = { { .rows = options },
		     { .rows = filter_options, .at = offsetof(struct change, filter) } },
	.operands = COMPLETE_NAME,
	.one_operand = true,
	.help = "--filter, -p, --comm and --cgroup together replace the old filter. Each record passes\n"
		"either the old filter or the new one: the change loses none and repeats none.\n"
		"-c and -F keep the buffers and their records: see perfctl(1).\n"
		"\n"
		"Examples:\n"
		"  perfctl change switches --filter 'prev_pid != 0'\n"
		"  perfctl change switches -m 16M --max-rate 50000/s\n"
		"  perfctl change samples -F 4999\n",
};
