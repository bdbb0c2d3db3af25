// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl trigger: lists, shows, removes and fires triggers. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/make-events.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/events/tape.h"
#include "client/perfctl/events/user-program.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/trigger.h"
#include "proto/clock.h"

#define SECOND 1000000000.0

const char *const trigger_effects[PP_ACTIONS] = { "freezes", "freezes", "pauses", "notifies" };

static const char *action_name(uint32_t action)
{
	static const char *const names[PP_ACTIONS] = PP_ACTION_NAMES;

	return action < PP_ACTIONS ? names[action] : "unknown";
}

void trigger_print_on(FILE *f, const char *on, const char *until, const char *rate)
{
	print_text(f, on, strlen(on));
	if (*until) {
		fputs(" until ", f);
		print_text(f, until, strlen(until));
	}
	if (*rate)
		fprintf(f, " %s", rate);
}

void trigger_print_pair(FILE *f, const char *key, uint64_t longer_than)
{
	const char *comma = strchr(key, ',');

	if (comma)
		fprintf(f, "%.*s = %s", (int)(comma - key), key, comma + 1);
	else
		fprintf(f, "the same %s", key);
	fprintf(f, ", longer than %g ms", (double)longer_than / 1e6);
}

/* ── list, show ─────────────────────────────────────────────────────────────────────────── */

static const struct column columns[] = {
	{ "ID", true },	      { "NAME", false }, { "ON", false },    { "ACTION", false },
	{ "TARGETS", false }, { "ARMED", true }, { "FIRED", true },  { "HELD", true },
	{ "SPENT", true },    { "LATE", true },	 { "MISSED", true }, { "UNKEPT", true },
	{ "LAST", true },
};

static void missed_cell(struct table *t, const struct perfpersist_trigger *v)
{
	if (v->missed_unknown)
		table_cell(t, "unknown");
	else
		table_cell(t, "%" PRIu64 "%s", v->missed, v->missed_at_least ? "+" : "");
}

static int list_table(const struct perfpersist_trigger *all, size_t n)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };

	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_trigger *v = &all[i];

		table_cell(&t, "%" PRIu64, v->id);
		table_cell(&t, "%s/%s", v->ns, v->name);
		table_cell(&t, "%s%s%s%s%s", v->event, *v->until ? " until " : "", v->until,
			   *v->rate ? " " : "", v->rate);
		table_cell(&t, "%s", action_name(v->action));
		table_cell(&t, "%s", *v->targets ? v->targets : "-");
		table_cell(&t, "%u of %u", v->n_armed, v->n_targets);
		table_cell(&t, "%" PRIu64, v->fired);
		table_cell(&t, "%" PRIu64, v->held);
		table_cell(&t, "%" PRIu64, v->spent);
		table_cell(&t, "%" PRIu64, v->late);
		missed_cell(&t, v);
		table_cell(&t, "%" PRIu64, v->unkept);
		if (v->last)
			table_cell(&t, "%s", format_age(pp_clock_real(v->last)).s);
		else
			table_cell(&t, "never");
	}
	if (table_print(&t, stdout) < 0) {
		complain("cannot print the list: out of memory");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static void trigger_json(struct json *j, const struct perfpersist_trigger *v)
{
	json_begin(j, NULL, '{');
	json_unsigned(j, "id", v->id);
	json_string(j, "namespace", v->ns);
	json_string(j, "name", v->name);
	json_string(j, "event", v->event);
	json_string(j, "filter", v->filter);
	json_string(j, "until", v->until);
	json_string(j, "key", v->key);
	json_unsigned(j, "longer_than", v->longer_than);
	json_string(j, "rate", v->rate);
	json_string(j, "action", action_name(v->action));
	json_string(j, "targets", v->targets);
	json_unsigned(j, "tapes", v->tapes);
	json_unsigned(j, "hold_off", v->hold_off);
	json_unsigned(j, "max_per_day", v->max_per_day);
	json_unsigned(j, "after", v->after);
	json_unsigned(j, "after_records", v->after_records);
	json_bool(j, "paused", v->state == PERFPERSIST_PAUSED);
	json_unsigned(j, "n_targets", v->n_targets);
	json_unsigned(j, "n_armed", v->n_armed);
	json_unsigned(j, "fired", v->fired);
	json_unsigned(j, "held", v->held);
	json_unsigned(j, "spent", v->spent);
	json_unsigned(j, "late", v->late);
	if (v->missed_unknown)
		json_null(j, "missed");
	else
		json_unsigned(j, "missed", v->missed);
	json_bool(j, "missed_at_least", v->missed_at_least);
	json_unsigned(j, "unkept", v->unkept);
	json_unsigned(j, "overdue", v->overdue);
	json_unsigned(j, "ended", v->ended);
	if (v->last)
		json_unsigned(j, "last", pp_clock_real(v->last));
	else
		json_null(j, "last");
	json_end(j, '}');
}

static void show_one(const struct perfpersist_trigger *v)
{
	printf("%s/%s (id %" PRIu64 ")%s\n", v->ns, v->name, v->id,
	       v->state == PERFPERSIST_PAUSED ? ", paused" : "");
	printf("  on        ");
	trigger_print_on(stdout, v->event, v->until, v->rate);
	if (*v->until) {
		printf("\n  with      ");
		trigger_print_pair(stdout, v->key, v->longer_than);
	}
	if (v->filter[0]) {
		fputs("\n  if        ", stdout);
		print_text(stdout, v->filter, strlen(v->filter));
	}
	printf("\n  action    %s", action_name(v->action));
	if (*v->targets)
		printf("\n  %-9s %s: %u event%s, %u of them armed",
		       trigger_effects[v->action % PP_ACTIONS], v->targets, v->n_targets,
		       v->n_targets == 1 ? "" : "s", v->n_armed);
	if (v->tapes)
		printf("\n  waits     %" PRIu64 " event%s frozen and neither saved nor released",
		       v->tapes, v->tapes == 1 ? "" : "s");
	putchar('\n');
	printf("  hold-off  %g s\n", (double)v->hold_off / SECOND);
	if (v->after_records)
		printf("  goes on   for %" PRIu64 " records of each, %g s at most\n",
		       v->after_records, (double)v->after / SECOND);
	else if (v->after)
		printf("  goes on   for %g s\n", (double)v->after / SECOND);
	if (v->max_per_day)
		printf("  per day   %" PRIu64 " at most\n", v->max_per_day);
	printf("  fired     %" PRIu64, v->fired);
	if (v->last)
		printf(", last %s ago", format_age(pp_clock_real(v->last)).s);
	printf("\n  not fired %" PRIu64 " within the hold-off, %" PRIu64
	       " beyond the day's number, ",
	       v->held, v->spent);
	if (v->missed_unknown)
		puts("unknown how many missed");
	else
		printf("%" PRIu64 "%s missed\n", v->missed, v->missed_at_least ? "+" : "");
	if (*v->until) {
		printf("  missing   %" PRIu64 " ends, which fired, or not, as if they had come\n",
		       v->overdue);
		printf("  no end    %" PRIu64 " whose task has ended, %" PRIu64
		       " that found no room in the table\n",
		       v->ended, v->unkept);
	}
	printf("  late      %" PRIu64
	       " target%s left alone: not armed, or the last one not saved\n",
	       v->late, v->late == 1 ? "" : "s");
}

static int find_triggers(struct call *call, const char *ns, struct perfpersist_trigger **ret,
			 size_t *ret_n)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	int r = call_connect(call, &p);

	if (r)
		return r;
	r = perfpersist_triggers(p, ns, ret, ret_n);
	return r < 0 ? call_failed(p, r) : EXIT_OK;
}

static int run_list(struct call *call)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	struct json j = { .f = stdout };
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = find_triggers(call, call->operands[0], &all, &n);
	if (r)
		return r;
	if (!call->json)
		return list_table(all, n);
	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		trigger_json(&j, &all[i]);
	json_end(&j, ']');
	putchar('\n');
	return EXIT_OK;
}

static const struct verb verb_list_triggers = {
	.name = "trigger list",
	.synopsis = "[NAMESPACE]",
	.summary = "list the triggers",
	.run = run_list,
	.operands = COMPLETE_NAMESPACE,
	.one_operand = true,
	.help = "ARMED: how many of the events that it names it would freeze or pause now.\n"
		"FIRED: how often it fired.\n"
		"HELD: records that did not fire because of the hold-off.\n"
		"SPENT: records that did not fire because of --max-per-day.\n"
		"LATE: targets that it could not freeze or pause, because what was frozen before was not\n"
		"saved yet, or because they are paused; a firing that found no target armed counts as one.\n"
		"MISSED: occurrences of its event that made no record; they did not fire, unless the buffer\n"
		"had no place for them.\n"
		"UNKEPT: occurrences of --on for which there was no room, so that their --until cannot fire.\n"
		"LAST: how long ago it fired.\n",
};

static int run_show(struct call *call)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	struct json j = { .f = stdout };
	struct event_name name;
	size_t n = 0;
	int r;

	if (!options_read(call, NULL))
		return call->code;
	if (!call->n_operands || parse_event_name(call->operands[0], NULL, &name) < 0)
		return bad_usage(call, "give the NAME of a trigger");
	r = find_triggers(call, name.ns, &all, &n);
	for (size_t i = 0; !r && i < n; i++)
		if (!strcmp(all[i].name, name.name)) {
			if (!call->json) {
				show_one(&all[i]);
				return EXIT_OK;
			}
			trigger_json(&j, &all[i]);
			putchar('\n');
			return EXIT_OK;
		}
	if (r)
		return r;
	complain("there is no trigger '%s' in the namespace %s; `perfctl trigger list` shows those "
		 "there are",
		 name.name, name.ns);
	return EXIT_NOT_FOUND;
}

static const struct verb verb_show_trigger = {
	.name = "trigger show",
	.synopsis = "NAME",
	.summary = "show a trigger",
	.run = run_show,
	.operands = COMPLETE_TRIGGER,
	.one_operand = true,
	.help = "Prints what `perfctl trigger list` has, its filter and its limits.\n",
};

/* ── remove, fire ───────────────────────────────────────────────────────────────────────── */

/* What a verb does with one of its operands; `json` NULL: it prints a sentence. */
typedef int do_one_fn(struct perfpersist *p, const struct event_name *name, struct json *json);

/* The exit code is that of the first failure. */
static int for_each(struct call *call, do_one_fn *fn)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct json j = { .f = stdout };
	struct event_name name;
	int r, code = EXIT_OK;

	if (!options_read(call, NULL))
		return call->code;
	if (!call->n_operands)
		return bad_usage(call, "give the NAME of a trigger");
	for (size_t i = 0; i < call->n_operands; i++)
		if (parse_event_name(call->operands[i], NULL, &name) < 0)
			return bad_usage(call, "%s: not a valid name", call->operands[i]);
	r = call_connect(call, &p);
	if (r)
		return r;
	if (call->json)
		json_begin(&j, NULL, '[');
	for (size_t i = 0; i < call->n_operands; i++) {
		int failed;

		parse_event_name(call->operands[i], NULL, &name);
		failed = fn(p, &name, call->json ? &j : NULL);
		code = code ?: failed;
	}
	if (call->json) {
		json_end(&j, ']');
		putchar('\n');
	}
	return code;
}

static void begin_json(struct json *j, const struct event_name *name)
{
	json_begin(j, NULL, '{');
	json_string(j, "namespace", name->ns);
	json_string(j, "name", name->name);
}

static int remove_one(struct perfpersist *p, const struct event_name *name, struct json *json)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = perfpersist_show(p, name->ns, name->name, &info);

	if (r >= 0 && !(info.flags & PERFPERSIST_TRIGGER)) {
		complain("%s/%s is an event and no trigger; `perfctl delete` deletes it", name->ns,
			 name->name);
		return EXIT_FAILED;
	}
	if (r >= 0)
		r = perfpersist_delete_by_id(p, info.id, &info);
	if (r < 0)
		return suggest_name(p, r, name->ns, name->name);
	if (json) {
		begin_json(json, name);
		json_unsigned(json, "id", info.id);
		json_end(json, '}');
	} else {
		printf("%s/%s (id %" PRIu64 ") is removed\n", info.ns, info.name, info.id);
	}
	return EXIT_OK;
}

static int run_remove(struct call *call)
{
	return for_each(call, remove_one);
}

static const struct verb verb_remove = {
	.name = "trigger remove",
	.synopsis = "NAME...",
	.summary = "remove triggers",
	.run = run_remove,
	.operands = COMPLETE_TRIGGER,
	.help = "What they have frozen is still saved; with --action freeze it waits, as before.\n",
};

static int fire_one(struct perfpersist *p, const struct event_name *name, struct json *json)
{
	int r = perfpersist_trigger_fire(p, name->ns, name->name);

	if (r < 0)
		return suggest_name(p, r, name->ns, name->name);
	if (json) {
		begin_json(json, name);
		json_end(json, '}');
	} else {
		printf("%s/%s has fired\n", name->ns, name->name);
	}
	return EXIT_OK;
}

static int run_fire(struct call *call)
{
	return for_each(call, fire_one);
}

static const struct verb verb_fire = {
	.name = "trigger fire",
	.synopsis = "NAME...",
	.summary = "fire triggers by hand",
	.run = run_fire,
	.operands = COMPLETE_TRIGGER,
	.help = "The hold-off and --max-per-day apply to this, too.\n",
};

/* All that it has frozen, whoever was to save it. */
static int release_one(struct perfpersist *p, const struct event_name *name, struct json *json)
{
	_cleanup_free_ struct perfpersist_tape *tapes = NULL;
	size_t n = 0, released = 0;
	int r = perfpersist_tapes(p, NULL, &tapes, &n); /* the namespace may be gone */

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!tape_is_of(&tapes[i], name))
			continue;
		r = perfpersist_tape_release(p, tapes[i].id);
		released += r >= 0;
		if (r == -ENOENT) /* somebody was faster */
			r = 0;
	}
	if (r < 0)
		return call_failed(p, r);
	if (!released)
		return tape_not_found(name);
	if (json) {
		begin_json(json, name);
		json_unsigned(json, "released", released);
		json_end(json, '}');
	} else {
		printf("%s/%s: what %zu event%s had recorded is released\n", name->ns, name->name,
		       released, released == 1 ? "" : "s");
	}
	return EXIT_OK;
}

static int run_release(struct call *call)
{
	return for_each(call, release_one);
}

static const struct verb verb_release = {
	.name = "trigger release",
	.synopsis = "NAME...",
	.summary = "give back what triggers have frozen, without saving it",
	.run = run_release,
	.operands = COMPLETE_TRIGGER,
	.help = "Of a trigger that is removed the name is `" PP_TRIGGER_REMOVED
		"`. What one with --action pause has paused,\n"
		"`perfctl resume` resumes.\n",
};

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct verb *const parts[] = {
	&verb_trigger_add,
	&verb_list_triggers,
	&verb_show_trigger,
	&verb_remove,
	&verb_fire,
	&verb_release,
	NULL,
};

static int run(struct call *call)
{
	return options_read(call, NULL) ? bad_usage(call, "trigger what? %s", verb_trigger.synopsis)
					: call->code;
}

const struct verb verb_trigger = {
	.name = "trigger",
	.synopsis = "add | list | show | remove | fire | release ...",
	.summary = "freeze events when something happens",
	.run = run,
	.parts = parts,
	.operands = COMPLETE_PART,
	.help = "Examples:\n"
		"  perfctl trigger add oom --on oom:mark_victim sched\n"
		"  perfctl trigger list\n"
		"  perfctl trigger fire oom\n",
};
