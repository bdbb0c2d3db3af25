// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl reopen: an event's newest records, from a snapshot of its rings; or the rings
 * themselves, for a command.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/follow.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/print-record.h"

#define DEFAULT_RECORDS 10

static const struct option longs[] = {
	{ "id", required_argument, NULL, 'i' },
	{ "follow", no_argument, NULL, 'f' },
	{ "wakeup", no_argument, NULL, 'w' },
	{ "copy", no_argument, NULL, 'c' },
	{},
};

struct reopen {
	struct event_name name;
	bool by_id;
	uint64_t id;
	uint64_t newest; /* as it was written; SIZE_MAX: `all` */
	struct follow_options follow;
};

static void cleanup_snapshot(struct perfpersist_snapshot **s)
{
	perfpersist_snapshot_free(*s);
}

static void cleanup_merge(struct perfpersist_merge **m)
{
	perfpersist_merge_free(*m);
}

static int cannot_read(const struct perfpersist_info *info, int error)
{
	complain("cannot read the rings of %s/%s: %s", info->ns, info->name, strerror(-error));
	return EXIT_FAILED;
}

/*
 * The records go to stdout; how many they are, of how many, to stderr. That is asked after the
 * snapshot, so that it is no less; and of the event, whose buffers may not be its first.
 */
static void summarize(struct perfpersist *p, struct perfpersist_event *e, uint64_t printed,
		      size_t damaged)
{
	struct perfpersist_info rings = { .sz = sizeof(rings) }, now = { .sz = sizeof(now) };

	fflush(stdout);
	perfpersist_event_info(e, &rings);
	if (perfpersist_show(p, rings.ns, rings.name, &now) < 0 || now.id != rings.id)
		now = rings; /* it was deleted meanwhile */
	fprintf(stderr, "%s/%s: %" PRIu64 " printed of %" PRIu64 " written, ", now.ns, now.name,
		printed, now.records);
	if (now.missed_unknown)
		fputs("missed unknown", stderr);
	else
		fprintf(stderr, "%s missed", format_missed(&now).s);
	if (damaged)
		fprintf(stderr, "; %zu ring%s damaged", damaged, damaged == 1 ? "" : "s");
	fputc('\n', stderr);
}

static int print_records(const struct call *call, struct perfpersist_event *e,
			 struct sources *sources, struct perfpersist_merge *m, uint64_t *ret)
{
	struct perfpersist_sample sample;
	uint64_t n = 0, realtime = 0;
	int r;

	while ((r = perfpersist_merge_next(m, &sample)) > 0) {
		struct source *source = sources_of(sources, &sample);

		if (call->connect.saved)
			realtime = perfpersist_event_realtime(e, sample.time);
		if (call->json)
			record_json(source, &sample, realtime, stdout);
		else
			record_print(source, &sample, realtime, stdout);
		n++;
	}
	*ret = n;
	return r;
}

static int print_event(const struct call *call, struct perfpersist *p, struct perfpersist_event *e,
		       const struct perfpersist_info *info, uint64_t newest)
{
	_cleanup_(cleanup_snapshot) struct perfpersist_snapshot *s = NULL;
	_cleanup_(cleanup_merge) struct perfpersist_merge *m = NULL;
	_cleanup_(sources_done) struct sources sources = {};
	uint64_t printed;
	int r;

	r = perfpersist_snapshot_new(e, &s);
	if (r >= 0)
		r = perfpersist_snapshot_take(s);
	if (r >= 0)
		r = sources_open(e, &sources);
	if (r >= 0)
		r = perfpersist_merge_new(s, PERFPERSIST_OLDEST_FIRST, newest, &m);
	if (r >= 0)
		r = print_records(call, e, &sources, m, &printed);
	if (r < 0)
		return cannot_read(info, r);
	summarize(p, e, printed, perfpersist_merge_damaged(m));
	return EXIT_OK;
}

static int take_option(struct call *call, int opt, struct reopen *o)
{
	switch (opt) {
	case 'f':
		o->follow.on = true;
		return EXIT_OK;
	case 'w':
		o->follow.on = o->follow.wakeup = true;
		return EXIT_OK;
	case 'c':
		o->follow.copies = true;
		return EXIT_OK;
	case 'i':
		o->by_id = true;
		if (parse_number(optarg, &o->id) < 0)
			return bad_usage(call, "--id %s: not an event's id", optarg);
		return EXIT_OK;
	}
	if (!strcmp(optarg, "all"))
		o->newest = SIZE_MAX;
	else if (parse_number(optarg, &o->newest) < 0 || o->newest > SIZE_MAX)
		return bad_usage(call, "-n %s: neither a number of records nor `all`", optarg);
	return EXIT_OK;
}

static int take_operands(struct call *call, struct reopen *o)
{
	if (call->n_operands + o->by_id != 1)
		return bad_usage(call, "reopen takes one NAME, or one --id");
	if (!o->by_id && parse_event_name(call->operands[0], NULL, &o->name) < 0)
		return bad_usage(call, "%s: not a name of an event", call->operands[0]);
	if (call->command && !call->command[0])
		return bad_usage(call, "-- needs a command behind it");
	if (call->command && o->follow.on)
		return bad_usage(call, "-f and -- COMMAND: follow here, or hand the buffers over");
	if (o->by_id && (o->follow.on || o->follow.copies))
		return bad_usage(call,
				 "--id goes with neither -f, --wakeup nor --copy: give the NAME");
	if (call->connect.saved && (o->follow.on || o->follow.copies))
		return bad_usage(call, "--saved goes with neither -f, --wakeup nor --copy: nothing "
				       "comes to a save");
	if (o->follow.wakeup && call->connect.direct)
		return bad_usage(call, "--wakeup and --direct: it is the daemon that wakes");
	return EXIT_OK;
}

/* -n 0 means all records, except with -f, where it means none. */
static uint64_t newest_of(const struct reopen *o)
{
	if (!o->follow.on && (o->newest == 0 || o->newest == SIZE_MAX))
		return 0;
	return o->newest;
}

static int open_event(const struct reopen *o, struct perfpersist *p, struct perfpersist_event **ret)
{
	if (o->by_id)
		return perfpersist_open_by_id(p, o->id, ret);
	if (o->follow.copies)
		return perfpersist_open_copy(p, o->name.ns, o->name.name, ret);
	return perfpersist_open(p, o->name.ns, o->name.name, ret);
}

static int run(struct call *call, int argc, char **argv)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct reopen o = { .newest = DEFAULT_RECORDS };
	int opt, r;

	r = options_start(call, argc, argv, "n:f", longs);
	if (r < 0)
		return EXIT_FAILED;
	while ((opt = options_next(call)) > 0) {
		r = take_option(call, opt, &o);
		if (r)
			return r;
	}
	if (opt < 0)
		return call->code;
	r = take_operands(call, &o);
	if (r)
		return r;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = open_event(&o, p, &e);
	if (r < 0)
		return call_failed(p, r);
	r = perfpersist_event_info(e, &info);
	if (r < 0)
		return cannot_read(&info, r);
	if (call->command)
		return run_with_rings(e, info.ns, info.name, call->command);
	if (o.follow.on)
		return follow(call, p, TAKE_PTR(e), &o.name, &o.follow, newest_of(&o));
	return print_event(call, p, e, &info, newest_of(&o));
}

const struct verb verb_reopen = {
	.name = "reopen",
	.synopsis = "NAME | --id ID [OPTIONS] [-- COMMAND [ARG...]]",
	.summary = "print an event's records, follow it, or hand its buffers to a command",
	.run = run,
	.reads_saves = true,
	.runs_command = true,
	.help = "  -n N          the newest N records, oldest first; 0 or `all`: everything;\n"
		"                else 10\n"
		"  -f, --follow  after them, those that come (after none with -n 0)\n"
		"  --wakeup      the same, woken by each record instead of looking: for rare events\n"
		"                that were created with --wakeup\n"
		"  --copy        from copies that the daemon makes, instead of the live buffers\n"
		"  --id ID       the event with this id\n"
		"\n"
		"The event goes on recording; nothing that is read is taken away. With --json: an\n"
		"object a line. How much there was stands on stderr; of a follower also how many\n"
		"records were overwritten before they could be read.\n"
		"\n"
		"COMMAND inherits each CPU's buffer as a descriptor, from 3 on, to be mapped\n"
		"read-only: LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES=cpu0:cpu1:..., and\n"
		"PERFPERSIST_EVENT=NAMESPACE/NAME. Its exit code is perfctl's.\n"
		"\n"
		"Examples:\n"
		"  perfctl reopen switches -n 20\n"
		"  perfctl reopen switches -f\n"
		"  perfctl reopen switches -n all --json | jq .fields.next_comm\n"
		"  perfctl reopen switches -- ./my-reader\n"
		"  perfctl --saved reopen mce/mce_record -n all\n",
};
