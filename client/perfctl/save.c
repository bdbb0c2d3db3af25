// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl save: saves the rings' records to files that survive a reboot, and lists such saves. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"

#define KEEP_MAX 1000000

static const struct column columns[] = {
	{ "SAVE", false },   { "AGE", true },	{ "EVENTS", true },
	{ "RECORDS", true }, { "PATH", false },
};

struct save {
	struct perfpersist_save_options options;
	uint64_t keep;
	bool list;
};

/* ── The list ───────────────────────────────────────────────────────────────────────────── */

struct contents {
	size_t events;
	uint64_t records; /* up to the save */
	bool is_damaged;
};

static struct contents look_into(const struct call *call, const struct perfpersist_saved *saved)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	struct perfpersist_options options = call->connect;
	struct contents c = {};
	size_t n = 0;

	options.sz = sizeof(options);
	options.saved = saved->path;
	options.direct = false;
	if (perfpersist_connect(&options, &p) < 0 || perfpersist_list(p, NULL, &infos, &n) < 0)
		return (struct contents){ .is_damaged = true };
	c.events = n;
	for (size_t i = 0; i < n; i++)
		c.records += infos[i].records;
	return c;
}

static void list_json(const struct call *call, const struct perfpersist_saved *saves, size_t n)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++) {
		struct contents c = look_into(call, &saves[i]);

		json_begin(&j, NULL, '{');
		json_string(&j, "save", saves[i].name);
		json_string(&j, "path", saves[i].path);
		json_unsigned(&j, "time", saves[i].time);
		if (c.is_damaged)
			json_bool(&j, "damaged", true);
		else
			json_unsigned(&j, "events", c.events);
		if (!c.is_damaged)
			json_unsigned(&j, "records", c.records);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	putchar('\n');
}

static int list_table(const struct call *call, const struct perfpersist_saved *saves, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		struct contents c = look_into(call, &saves[i]);

		table_cell(&t, "%s", saves[i].name);
		table_cell(&t, "%s", format_age(saves[i].time).s);
		if (c.is_damaged) {
			table_cell(&t, "damaged");
			table_cell(&t, "-");
		} else {
			table_cell(&t, "%zu", c.events);
			table_cell(&t, "%" PRIu64, c.records);
		}
		table_cell(&t, "%s", saves[i].path);
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int list(const struct call *call)
{
	_cleanup_free_ struct perfpersist_saved *saves = NULL;
	size_t n = 0;
	int r = perfpersist_saves(call->connect.instance, &saves, &n);

	if (r < 0)
		return call_failed(NULL, r);
	if (!call->json)
		return list_table(call, saves, n);
	list_json(call, saves, n);
	return EXIT_OK;
}

/* ── Saving ─────────────────────────────────────────────────────────────────────────────── */

static void print_json(const struct perfpersist_save_result *s)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	if (s->events)
		json_string(&j, "path", s->path);
	else
		json_null(&j, "path");
	json_unsigned(&j, "events", s->events);
	json_unsigned(&j, "records", s->records);
	json_unsigned(&j, "bytes", s->bytes);
	json_unsigned(&j, "removed", s->removed);
	json_unsigned(&j, "failed", s->failed);
	json_string(&j, "message", s->message);
	json_end(&j, '}');
	putchar('\n');
}

static void print(const struct perfpersist_save_result *s)
{
	if (!s->events) {
		puts("nothing is saved: there are no events that you may read");
		return;
	}
	printf("%u event%s saved, %" PRIu64 " record%s of %" PRIu64 " bytes: ", s->events,
	       s->events == 1 ? "" : "s", s->records, s->records == 1 ? "" : "s", s->bytes);
	print_text(stdout, s->path, strlen(s->path));
	putchar('\n');
	if (s->removed)
		printf("%u older save%s removed\n", s->removed, s->removed == 1 ? "" : "s");
}

static int save(struct call *call, struct perfpersist *p,
		const struct perfpersist_save_options *options)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	int r = perfpersist_save(p, options, &result);

	if (r < 0)
		return call_failed(p, r);
	if (call->json)
		print_json(&result);
	else
		print(&result);
	if (!result.failed)
		return EXIT_OK;
	complain("%u event%s could not be saved completely: %s", result.failed,
		 result.failed == 1 ? "" : "s", result.message);
	return EXIT_FAILED;
}

static int save_named(struct call *call, struct perfpersist_save_options *options)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	size_t n = call->n_operands;
	_cleanup_free_ struct event_name *parsed = calloc(n + 1, sizeof(*parsed));
	_cleanup_free_ struct perfpersist_name *names = calloc(n + 1, sizeof(*names));
	int r;

	if (!parsed || !names)
		return EXIT_FAILED;
	for (size_t i = 0; i < n; i++) {
		if (parse_events_name(call->operands[i], &parsed[i]) < 0)
			return bad_usage(call, "%s: neither an event name nor NAMESPACE/",
					 call->operands[i]);
		names[i].ns = parsed[i].ns;
		names[i].name = parsed[i].name[0] ? parsed[i].name : NULL;
	}
	options->names = names;
	options->n_names = n;
	allow_descriptors();
	r = call_connect(call, &p);
	return r ? r : save(call, p, options);
}

/* ── The command line ───────────────────────────────────────────────────────────────────── */

static int parse_keep(const char *text, uint64_t *ret)
{
	int r;

	if (!strcmp(text, "all")) {
		*ret = PERFPERSIST_KEEP_ALL;
		return 0;
	}
	r = parse_number(text, ret);
	return r < 0 ? r : *ret > KEEP_MAX ? -ERANGE : 0;
}

static const struct verb_option options[] = {
	{ 'o', "output", "DIR",
	  "the directory to create; default: one named after the time, below "
	  "/var/lib/perfpersist/saved (for root)",
	  TAKE_TEXT(struct save, options.path), .completes = COMPLETE_DIRECTORY },
	{ 0, "keep", "N",
	  "keep the newest N saves there and remove older ones; `all`: remove none; default: 3",
	  TAKE_VALUE(struct save, keep, parse_keep, "neither a number above 0 nor `all`"), .min = 1,
	  .completes = COMPLETE_WORDS, .words = "all" },
	{ 0, "list", NULL, "list the saves", TAKE_FLAG(struct save, list) },
	{},
};

static int run(struct call *call)
{
	struct save s = { .options.sz = sizeof(s.options) };

	if (!options_read(call, &s))
		return call->code;
	s.options.keep = (uint32_t)s.keep;
	if (s.options.path && s.options.keep)
		return bad_usage(call,
				 "-o and --keep are mutually exclusive: only saves in the default "
				 "directory are removed");
	if (s.list && (call->n_operands || s.options.path || s.options.keep))
		return bad_usage(call, "--list takes no NAME, -o or --keep");
	return s.list ? list(call) : save_named(call, &s.options);
}

const struct verb verb_save = {
	.name = "save",
	.synopsis = "[NAME | NAMESPACE/ ...] [-o DIR] [--keep N] | --list",
	.summary = "save the buffers' records to files that survive a reboot",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAMES,
	.help = "Without NAME, saves all events that you may read. Recording continues meanwhile.\n"
		"`perfctl --saved list`, show, stat and reopen read the newest save, also after a\n"
		"reboot and without a daemon; --saved=SAVE reads one by its name or path. Users who may\n"
		"read a namespace may read its files.\n"
		"\n"
		"Examples:\n"
		"  perfctl save\n"
		"  perfctl save -o /root/incident mce/ web/profile\n"
		"  perfctl --saved reopen web/profile -n all\n",
};
