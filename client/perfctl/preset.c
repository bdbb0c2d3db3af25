// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl preset: lists and shows what can be turned on without knowing the names of events. */
#include "client/perfctl/preset.h"

#include <ctype.h>
#include <string.h>

#include "client/perfctl/output/output.h"
#include "proto/nearest.h"

#define PER_UNIT "per unit" /* the state of a template */

const struct verb_option preset_options[] = {
	{ 'D', "directory", "DIR",
	  "where the links are that turn presets on; default: /etc/perfpersist/events.d",
	  TAKE_TEXT(struct preset_options, links), .completes = COMPLETE_DIRECTORY },
	{ 0, "presets", "DIR", "where presets are; default: " PRESETS_DIRECTORY,
	  TAKE_TEXT(struct preset_options, presets), .completes = COMPLETE_DIRECTORY },
	{},
};

/* ── which ──────────────────────────────────────────────────────────────────────────────── */

static int find_links(const struct call *call, const struct preset_options *o, char ret[PATH_MAX])
{
	int n;

	if (!o->links)
		return presets_links_place(call->connect.instance, ret, PATH_MAX) < 0
			       ? bad_usage(call, "--instance %s: not an instance's name",
					   call->connect.instance)
			       : EXIT_OK;
	n = snprintf(ret, PATH_MAX, "%s", o->links);
	return n >= PATH_MAX ? bad_usage(call, "-D: the path is too long") : EXIT_OK;
}

/* Reads the presets and finds events.d. Returns an exit code; has complained if not EXIT_OK. */
static int find_places(struct call *call, const struct preset_options *o, struct chosen *ret)
{
	const char *directory = o->presets ?: PRESETS_DIRECTORY;
	int r;

	*ret = (struct chosen){};
	r = presets_find(directory, &ret->presets);
	if (r < 0)
		return call_failed_as(
			r, "cannot read the presets in %s: %s; --presets says where others are",
			directory, strerror(-r));
	return find_links(call, o, ret->links);
}

int preset_unknown(const struct chosen *c)
{
	struct pp_nearest s;

	pp_nearest_begin(&s, c->name, strlen(c->name));
	for (size_t i = 0; i < c->presets.n; i++)
		pp_nearest_consider(&s, c->presets.all[i].name);
	if (s.best)
		complain("there is no preset %s in %s; did you mean %s?", c->name,
			 c->presets.directory, s.best);
	else
		complain("there is no preset %s in %s; `perfctl preset list` has those there are",
			 c->name, c->presets.directory);
	return EXIT_NOT_FOUND;
}

/* Those of systemd's units that have processes. */
static bool has_suffix(const char *unit)
{
	static const char *const suffixes[] = { ".service", ".scope", ".slice",
						".socket",  ".mount", ".swap" };
	const char *dot = strrchr(unit, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

/* It becomes part of a file's name, and of a filter's text. systemd adds .service as well. */
static int take_unit(const struct call *call, const char *text, char ret[PP_INSTANCE_SIZE])
{
	bool good = *text && *text != '.';
	int n;

	for (const char *p = text; *p; p++)
		good = good && (isalnum((unsigned char)*p) || strchr(":_.@-", *p));
	n = snprintf(ret, PP_INSTANCE_SIZE, "%s%s", text, has_suffix(text) ? "" : ".service");
	if (!good || n >= PP_INSTANCE_SIZE)
		return bad_usage(call, "%s: not the name of a unit such as nginx.service", text);
	return EXIT_OK;
}

int preset_choose(struct call *call, const struct preset_options *o, struct chosen *ret)
{
	struct chosen *c = ret;
	int r = find_places(call, o, c);

	if (r)
		return r;
	if (call->n_operands < 1 || call->n_operands > 2)
		return bad_usage(call, "%s takes one NAME, and for some presets a UNIT",
				 call->verb->name);
	c->name = call->operands[0];
	c->preset = presets_by_name(&c->presets, c->name);
	if (strchr(c->name, '/') || *c->name == '.')
		return preset_unknown(c);
	if (c->preset && !c->preset->is_template && call->n_operands > 1)
		return bad_usage(call, "preset %s takes no unit: it is for the whole machine",
				 c->name);
	r = call->n_operands > 1 ? take_unit(call, call->operands[1], c->unit) : EXIT_OK;
	if (!r && preset_link(c->links, c->name, c->unit, c->link) < 0)
		return bad_usage(call, "%s: the name is too long", c->name);
	return r;
}

void preset_chosen_done(struct chosen *c)
{
	presets_done(&c->presets);
}

void preset_print_name(FILE *f, const struct chosen *c)
{
	fprintf(f, "%s%s%s", c->name, *c->unit ? " " : "", c->unit);
}

/* ── list ───────────────────────────────────────────────────────────────────────────────── */

static const char *const states[] = {
	[PRESET_OFF] = "off", [PRESET_ENABLED] = "enabled", [PRESET_HIDDEN] = "your file"
};

static const struct column columns[] = {
	{ "NAME", false }, { "STATE", false },	 { "FOR", false },
	{ "COST", false }, { "HISTORY", false },
};

/* unit: of a template, or "". */
static const char *state_of(const struct chosen *c, const struct preset *p, const char *unit)
{
	char link[PATH_MAX];

	if (p->is_template && !*unit)
		return PER_UNIT;
	return preset_link(c->links, p->name, unit, link) < 0 ? states[PRESET_OFF]
							      : states[preset_look(link, p->path)];
}

typedef void list_row(void *to, const struct chosen *c, const struct preset *p, const char *unit);

/* Each preset; a template is followed by the units for which it is enabled. 0; -ENOMEM. */
static int each(const struct chosen *c, list_row *row, void *to)
{
	for (size_t i = 0; i < c->presets.n; i++) {
		const struct preset *p = &c->presets.all[i];
		char **units;
		size_t n;
		int r = preset_units(c->links, p, &units, &n);

		if (r < 0)
			return r;
		row(to, c, p, "");
		for (size_t k = 0; k < n; k++)
			row(to, c, p, units[k]);
		preset_units_free(units, n);
	}
	return 0;
}

static void table_row(void *to, const struct chosen *c, const struct preset *p, const char *unit)
{
	struct table *t = to;

	table_cell(t, "%s%s%s", p->name, p->is_template ? " " : "",
		   !p->is_template ? ""
		   : *unit	   ? unit
				   : "UNIT");
	table_cell(t, "%s", state_of(c, p, unit));
	table_cell(t, "%s", p->summary);
	table_cell(t, "%s", p->cost);
	table_cell(t, "%s", p->history);
}

static void json_facts(struct json *j, const struct chosen *c, const struct preset *p,
		       const char *unit)
{
	json_string(j, "name", p->name);
	if (*unit)
		json_string(j, "unit", unit);
	else
		json_null(j, "unit");
	json_bool(j, "per_unit", p->is_template);
	json_bool(j, "enabled", !strcmp(state_of(c, p, unit), states[PRESET_ENABLED]));
	json_string(j, "state", state_of(c, p, unit));
	json_string(j, "summary", p->summary);
	json_string(j, "cost", p->cost);
	json_string(j, "history", p->history);
	json_string(j, "path", p->path);
}

static void json_row(void *to, const struct chosen *c, const struct preset *p, const char *unit)
{
	json_begin(to, NULL, '{');
	json_facts(to, c, p, unit);
	json_end(to, '}');
}

static int list(const struct call *call, const struct chosen *c)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };
	struct json j = { .f = stdout };
	int r;

	if (call->json) {
		json_begin(&j, NULL, '[');
		r = each(c, json_row, &j);
		json_end(&j, ']');
		putchar('\n');
	} else {
		r = each(c, table_row, &t);
		r = r < 0 ? r : table_print(&t, stdout);
	}
	return r < 0 ? call_failed_as(r, "cannot list the presets: out of memory") : EXIT_OK;
}

static int run_list(struct call *call)
{
	_cleanup_(preset_chosen_done) struct chosen c = {};
	struct preset_options o = {};
	int r;

	if (!options_read(call, &o))
		return call->code;
	r = find_places(call, &o, &c);
	return r ?: list(call, &c);
}

static const struct verb verb_list_presets = {
	.name = "preset list",
	.synopsis = "",
	.summary = "list the presets, what they cost, and how far back they reach",
	.run = run_list,
	.options = { { .rows = preset_options } },
	.help = "STATE is `your file` where events.d has another file of that name, which is read in place\n"
		"of the preset. One that is `per unit` has a line for each unit for which it is enabled.\n",
};

/* ── show ───────────────────────────────────────────────────────────────────────────────── */

static void show_line(const char *title, const char *text)
{
	printf("  %-8s ", title);
	print_text(stdout, text, strlen(text));
	putchar('\n');
}

/* The file's own words, without its licence and the lines that are shown above them. */
static void show_text(const char *text)
{
	static const char *const shown[] = { "# SPDX-", "# Summary:", "# Cost:", "# History:" };
	bool any = false;

	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		bool skip = !any && (n == 0 || (n == 1 && *line == '#'));

		for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
			skip |= !strncmp(line, shown[i], strlen(shown[i]));
		if (!skip) {
			print_text(stdout, line, n);
			putchar('\n');
			any = true;
		}
		line += n + !!line[n];
	}
}

static int show(const struct chosen *c)
{
	const struct preset *p = c->preset;
	_cleanup_free_ struct preset_event *events = NULL;
	size_t n;

	if (preset_events(p, *c->unit || !p->is_template ? c->unit : "UNIT", &events, &n) < 0)
		return call_failed_as(-ENOMEM, "cannot show the preset: out of memory");
	preset_print_name(stdout, c);
	printf("%s: %s\n", p->is_template && !*c->unit ? " UNIT" : "", state_of(c, p, c->unit));
	show_line("for", p->summary);
	show_line("cost", p->cost);
	show_line("history", p->history);
	show_line("file", p->path);
	printf("  %-8s", "events");
	for (size_t i = 0; i < n; i++)
		printf("%s %s/%s%s", i ? "," : "", events[i].ns, events[i].name,
		       events[i].is_trigger ? " (trigger)" : "");
	fputs("\n\n", stdout);
	show_text(p->text);
	return EXIT_OK;
}

static int show_json(const struct chosen *c)
{
	_cleanup_free_ struct preset_event *events = NULL;
	struct json j = { .f = stdout };
	size_t n;

	if (preset_events(c->preset, c->unit, &events, &n) < 0)
		return call_failed_as(-ENOMEM, "cannot show the preset: out of memory");
	json_begin(&j, NULL, '{');
	json_facts(&j, c, c->preset, c->unit);
	json_begin(&j, "events", '[');
	for (size_t i = 0; i < n; i++) {
		json_begin(&j, NULL, '{');
		json_string(&j, "namespace", events[i].ns);
		json_string(&j, "name", events[i].name);
		json_bool(&j, "trigger", events[i].is_trigger);
		json_bool(&j, "optional", events[i].is_optional);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_string(&j, "text", c->preset->text);
	json_end(&j, '}');
	putchar('\n');
	return EXIT_OK;
}

static int run_show(struct call *call)
{
	_cleanup_(preset_chosen_done) struct chosen c = {};
	struct preset_options o = {};
	int r;

	if (!options_read(call, &o))
		return call->code;
	r = preset_choose(call, &o, &c);
	if (r)
		return r;
	if (!c.preset)
		return preset_unknown(&c);
	return call->json ? show_json(&c) : show(&c);
}

static const struct verb verb_show_preset = {
	.name = "preset show",
	.synopsis = "NAME [UNIT]",
	.summary = "show what a preset records, what it costs, and its file",
	.run = run_show,
	.options = { { .rows = preset_options } },
	.operands = COMPLETE_PRESET,
	.help = "Examples:\n"
		"  perfctl preset show flight\n",
};

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct verb *const parts[] = {
	&verb_list_presets, &verb_show_preset, &verb_enable_preset, &verb_disable_preset, NULL,
};

static int run(struct call *call)
{
	return options_read(call, NULL) ? bad_usage(call, "preset what? %s", verb_preset.synopsis)
					: call->code;
}

const struct verb verb_preset = {
	.name = "preset",
	.synopsis = "list | show | enable | disable ...",
	.summary = "record a shipped set of events from now on, and from every boot on",
	.run = run,
	.parts = parts,
	.operands = COMPLETE_PART,
	.help = "Examples:\n"
		"  perfctl preset list\n"
		"  perfctl preset enable flight\n"
		"  perfctl preset enable syscalls nginx.service\n",
};
