// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl reopen: prints events' newest records from a snapshot of their rings, or passes the rings
 * themselves of one event to a command.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/events/follow.h"
#include "client/perfctl/events/selection.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/print-record.h"
#include "proto/clock.h"

#define DEFAULT_RECORDS 10
#define NOT_GIVEN (UINT64_MAX - 1)

struct reopen {
	struct event_id id;
	uint64_t newest; /* as typed; SIZE_MAX: `all`; or NOT_GIVEN */
	struct follow_options follow;
	struct selection selection;
};

static void reopen_done(struct reopen *o)
{
	selection_done(&o->selection);
}

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

static void print_record(const struct call *call, struct perfpersist_event *e,
			 struct sources *sources, const struct perfpersist_sample *sample)
{
	struct source *source = sources_of(sources, sample);
	uint64_t realtime = call->connect.saved ? perfpersist_event_realtime(e, sample->time) : 0;

	if (call->json)
		record_json(source, sample, realtime, stdout);
	else
		record_print(source, sample, realtime, stdout);
}

static int print_records(const struct call *call, struct perfpersist_event *e,
			 struct sources *sources, struct perfpersist_merge *m, uint64_t *ret)
{
	struct perfpersist_sample sample;
	uint64_t n = 0;
	int r;

	for (; (r = perfpersist_merge_next(m, &sample)) > 0; n++)
		print_record(call, e, sources, &sample);
	*ret = n;
	return r;
}

/* One event without a selection: reads no more than its newest records. */
static int print_event(const struct call *call, struct perfpersist *p, struct perfpersist_event *e,
		       uint64_t newest)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	_cleanup_(cleanup_snapshot) struct perfpersist_snapshot *s = NULL;
	_cleanup_(cleanup_merge) struct perfpersist_merge *m = NULL;
	_cleanup_(sources_done) struct sources sources = {};
	uint64_t printed;
	int r;

	r = perfpersist_event_info(e, &info);
	if (r >= 0)
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
		return cannot_read(&info, r);
	summarize(p, e, printed, perfpersist_merge_damaged(m));
	return EXIT_OK;
}

/* ── Several events, or a selection ─────────────────────────────────────────────────────── */

/* A record that may be among the newest; its pointers are valid as long as the interleave. */
struct kept {
	struct perfpersist_sample sample;
	size_t event;
};

struct several {
	struct call *call;
	struct perfpersist *p;
	const struct chosen *chosen;
	struct selection *selection;
	uint64_t newest; /* 0: all */
	struct perfpersist_interleave *records;
	struct sources *sources; /* of each event */
	uint64_t *printed;	 /* of each event */
	struct kept *kept;	 /* a ring of the newest */
	uint64_t n;		 /* selected records */
	uint64_t first, last;	 /* times of all records */
};

static void several_done(struct several *s)
{
	for (size_t i = 0; s->sources && i < s->chosen->n; i++)
		sources_done(&s->sources[i]);
	free(s->sources);
	free(s->printed);
	free(s->kept);
	perfpersist_interleave_free(s->records);
}

static int several_open(struct several *s)
{
	/* Before the rings are copied: what is asked for is the time before the question. */
	uint64_t began = pp_clock_ns(CLOCK_MONOTONIC);
	size_t n = s->chosen->n;
	int r = perfpersist_interleave_new(s->chosen->events, n, &s->records);

	s->sources = calloc(n, sizeof(*s->sources));
	s->printed = calloc(n, sizeof(*s->printed));
	if (!s->sources || !s->printed)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = sources_open(s->chosen->events[i], &s->sources[i]);
	if (r < 0)
		return r;
	selection_settle(s->selection, perfpersist_event_realtime(s->chosen->events[0], 0),
			 chosen_now(s->records, n, began));
	selection_learn_threads(s->selection, s->p);
	return 0;
}

static void several_print(struct several *s, const struct kept *k)
{
	print_record(s->call, s->chosen->events[k->event], &s->sources[k->event], &k->sample);
	s->printed[k->event]++;
}

/* Prints a selected record, or keeps it until it is known which are the newest. */
static int several_take(struct several *s, const struct kept *k)
{
	s->n++;
	if (!s->newest) {
		several_print(s, k);
		return 0;
	}
	if (s->n <= s->newest && !GROW(s->kept, s->n - 1))
		return -ENOMEM;
	s->kept[(s->n - 1) % s->newest] = *k;
	return 0;
}

static int several_read(struct several *s)
{
	struct kept k;
	int r, error = 0;

	while ((r = perfpersist_interleave_next(s->records, &k.sample, &k.event)) > 0) {
		s->first = s->first ?: k.sample.time;
		s->last = k.sample.time;
		if (selection_learn(s->selection, k.sample.pid, k.sample.tid) < 0)
			return -ENOMEM;
		if (selection_wants(s->selection, &k.sample,
				    sources_of(&s->sources[k.event], &k.sample)))
			error = several_take(s, &k);
		if (error < 0)
			return error;
	}
	for (uint64_t i = s->n - MIN(s->n, s->newest); i < s->n && s->newest; i++)
		several_print(s, &s->kept[i % s->newest]);
	return r;
}

static int several_none(const struct several *s)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	char what[160] = "";

	perfpersist_event_info(s->chosen->events[0], &info);
	if (s->chosen->n == 1)
		snprintf(what, sizeof(what), "%s/%s", info.ns, info.name);
	else
		snprintf(what, sizeof(what), "the set of these %zu events", s->chosen->n);
	selection_tell_none(s->selection, what, s->first, s->last);
	return EXIT_NOT_FOUND;
}

static int print_several(struct call *call, struct perfpersist *p, const struct chosen *chosen,
			 struct selection *selection, uint64_t newest)
{
	_cleanup_(several_done) struct several s = {
		.call = call,
		.p = p,
		.chosen = chosen,
		.selection = selection,
		.newest = newest,
	};
	int r = several_open(&s);

	if (r >= 0)
		r = several_read(&s);
	if (r < 0) {
		complain("cannot read the events' rings: %s", strerror(-r));
		return EXIT_FAILED;
	}
	if (!s.n && selection_is_given(selection))
		return several_none(&s);
	for (size_t i = 0; i < chosen->n; i++)
		summarize(p, chosen->events[i], s.printed[i],
			  i ? 0 : perfpersist_interleave_damaged(s.records));
	return EXIT_OK;
}

/* ── The command line ───────────────────────────────────────────────────────────────────── */

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
	  "print the newest N records, oldest first; 0 or `all`: all records; default: 10, with --last "
	  "or --since all",
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
	if (!call->n_operands != o->id.given)
		return bad_usage(call, "reopen takes NAMEs, or one --id");
	if (call->command && !call->command[0])
		return bad_usage(call, "-- needs a command after it");
	if (call->command && (o->follow.on || selection_is_given(&o->selection)))
		return bad_usage(call,
				 "-f and %s do not go with -- COMMAND, which gets all of the "
				 "buffers",
				 selection_is_given(&o->selection) ? o->selection.typed
								   : "selections");
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
	bool has_begin = o->selection.last || o->selection.since;
	uint64_t newest = o->newest;

	if (newest == NOT_GIVEN)
		newest = has_begin ? SIZE_MAX : DEFAULT_RECORDS;
	return !o->follow.on && newest == SIZE_MAX ? 0 : newest;
}

static int open_events(struct call *call, struct perfpersist *p, const struct reopen *o,
		       struct chosen *ret)
{
	struct perfpersist_event **one;
	int r;

	if (!o->id.given)
		return choose_events(call, p, call->operands, call->n_operands, o->follow.copies,
				     ret);
	one = calloc(1, sizeof(*one));
	if (!one)
		return call_failed_as(-ENOMEM, "cannot open the event: out of memory");
	r = perfpersist_open_by_id(p, o->id.id, one);
	if (r < 0) {
		free(one);
		return call_failed(p, r);
	}
	*ret = (struct chosen){ one, 1 };
	return EXIT_OK;
}

static int run_command(struct call *call, const struct chosen *events)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	if (events->n > 1)
		return bad_usage(call,
				 "-- COMMAND gets the buffers of one event, and these are %zu",
				 events->n);
	r = perfpersist_event_info(events->events[0], &info);
	if (r < 0)
		return cannot_read(&info, r);
	return run_with_rings(events->events[0], info.ns, info.name, call->command);
}

static int reopen(struct call *call, struct reopen *o)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_(chosen_done) struct chosen events = {};
	int r = call_connect(call, &p);

	if (!r)
		r = open_events(call, p, o, &events);
	if (r)
		return r;
	if (call->command)
		return run_command(call, &events);
	if (o->follow.on)
		return follow(call, TAKE_PTR(p), &events, &o->selection, &o->follow, newest_of(o));
	if (events.n == 1 && !selection_is_given(&o->selection))
		return print_event(call, p, events.events[0], newest_of(o));
	return print_several(call, p, &events, &o->selection, newest_of(o));
}

static int run(struct call *call)
{
	_cleanup_(reopen_done) struct reopen o = { .newest = NOT_GIVEN };
	int r;

	if (!options_read(call, &o))
		return call->code;
	r = take_operands(call, &o);
	return r ? r : reopen(call, &o);
}

const struct verb verb_reopen = {
	.name = "reopen",
	.synopsis = "NAME... | --id ID [OPTIONS] [-- COMMAND [ARG...]]",
	.summary = "print events' records, follow them, or pass an event's buffers to a command",
	.run = run,
	.options = { { .rows = options },
		     { .rows = event_id_options, .at = offsetof(struct reopen, id) },
		     { .rows = selection_options,
		       .at = offsetof(struct reopen, selection),
		       .title = "To select records:" },
		     { .rows = selection_about, .at = offsetof(struct reopen, selection) } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.runs_command = true,
	.help = "NAME is an event, NAMESPACE/ or a glob of these; records of several events come in order\n"
		"of time. Recording goes on, and reading removes nothing. --json prints an object a line.\n"
		"The counts of records go to stderr; with -f, also the count of records that were\n"
		"overwritten before they could be read.\n"
		"\n"
		"COMMAND inherits each CPU's buffer as a file descriptor, from 3 on, to map read-only.\n"
		"The environment describes them: LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES=cpu0:cpu1:...,\n"
		"of several events with the `catalog` that tells them apart, and\n"
		"PERFPERSIST_EVENT=NAMESPACE/NAME. perfctl's exit code is that of COMMAND.\n"
		"\n"
		"Examples:\n"
		"  perfctl reopen switches -n 20\n"
		"  perfctl reopen switches -f\n"
		"  perfctl reopen sched/ -n all --last 1s --pid 4711\n"
		"  perfctl reopen switches -n all --json | jq .fields.next_comm\n"
		"  perfctl reopen switches -- ./my-reader\n"
		"  perfctl --saved reopen mce/mce_record -n all\n",
};
