// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl reopen: prints an event's newest records from a snapshot of its rings, or passes the
 * rings themselves to a command.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/follow.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/print-record.h"

#define DEFAULT_RECORDS 10

struct reopen {
	struct event_name name;
	struct event_id id;
	uint64_t newest; /* as typed; SIZE_MAX: `all` */
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
 * The records go to stdout, the counts to stderr. The event's counts are read after the snapshot,
 * so that they are not below the printed number, and from the event, whose buffers may not be its
 * first.
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

static int parse_newest(const char *text, uint64_t *ret)
{
	if (strcmp(text, "all") != 0)
		return parse_number(text, ret);
	*ret = SIZE_MAX;
	return 0;
}

static int take_wakeup(const struct given *g)
{
	struct follow_options *o = g->to;

	o->on = o->wakeup = true;
	return EXIT_OK;
}

static const struct verb_option options[] = {
	{ 'n', NULL, "N",
	  "print the newest N records, oldest first; 0 or `all`: all records; default: 10",
	  TAKE_VALUE(struct reopen, newest, parse_newest, "neither a number of records nor `all`"),
	  .max = SIZE_MAX, .completes = COMPLETE_WORDS, .words = "all" },
	{ 'f', "follow", NULL, "then print new records as they arrive; -n 0: only these",
	  TAKE_FLAG(struct reopen, follow.on) },
	{ 0, "wakeup", NULL,
	  "follow, woken by each record instead of polling; for rare events that were created "
	  "with --wakeup",
	  .take = take_wakeup, .to = offsetof(struct reopen, follow) },
	{ 0, "copy", NULL, "read copies that the daemon makes, instead of the live buffers",
	  TAKE_FLAG(struct reopen, follow.copies) },
	{},
};

static int take_operands(struct call *call, struct reopen *o)
{
	if (call->n_operands + o->id.given != 1)
		return bad_usage(call, "reopen takes one NAME, or one --id");
	if (!o->id.given && parse_event_name(call->operands[0], NULL, &o->name) < 0)
		return bad_usage(call, "%s: not a valid event name", call->operands[0]);
	if (call->command && !call->command[0])
		return bad_usage(call, "-- needs a command after it");
	if (call->command && o->follow.on)
		return bad_usage(call, "-f and -- COMMAND are mutually exclusive");
	if (o->id.given && (o->follow.on || o->follow.copies))
		return bad_usage(call,
				 "--id does not work with -f, --wakeup or --copy; give the NAME");
	if (call->connect.saved && (o->follow.on || o->follow.copies))
		return bad_usage(call,
				 "--saved does not work with -f, --wakeup or --copy: a save gets "
				 "no new records");
	if (o->follow.wakeup && call->connect.direct)
		return bad_usage(
			call, "--wakeup needs the daemon, which wakes readers; leave --direct out");
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
	if (o->id.given)
		return perfpersist_open_by_id(p, o->id.id, ret);
	if (o->follow.copies)
		return perfpersist_open_copy(p, o->name.ns, o->name.name, ret);
	return perfpersist_open(p, o->name.ns, o->name.name, ret);
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct reopen o = { .newest = DEFAULT_RECORDS };
	int r;

	if (!options_read(call, &o))
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
		return follow(call, TAKE_PTR(p), e, &o.name, &o.follow, newest_of(&o));
	return print_event(call, p, e, &info, newest_of(&o));
}

const struct verb verb_reopen = {
	.name = "reopen",
	.synopsis = "NAME | --id ID [OPTIONS] [-- COMMAND [ARG...]]",
	.summary = "print an event's records, follow it, or pass its buffers to a command",
	.run = run,
	.options = { { .rows = options },
		     { .rows = event_id_options, .at = offsetof(struct reopen, id) } },
	.operands = COMPLETE_NAME,
	.one_operand = true,
	.reads_saves = true,
	.runs_command = true,
	.help = "The event keeps recording, and reading removes nothing. --json prints an object a line.\n"
		"The counts of records go to stderr; with -f, also the count of records that were\n"
		"overwritten before they could be read.\n"
		"\n"
		"COMMAND inherits each CPU's buffer as a file descriptor, from 3 on, to map read-only.\n"
		"The environment describes them: LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES=cpu0:cpu1:...,\n"
		"and PERFPERSIST_EVENT=NAMESPACE/NAME. perfctl's exit code is that of COMMAND.\n"
		"\n"
		"Examples:\n"
		"  perfctl reopen switches -n 20\n"
		"  perfctl reopen switches -f\n"
		"  perfctl reopen switches -n all --json | jq .fields.next_comm\n"
		"  perfctl reopen switches -- ./my-reader\n"
		"  perfctl --saved reopen mce/mce_record -n all\n",
};
