// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl help, and --help of all verbs: prints the option tables and the verbs' own texts. */
#include <string.h>

#include "client/perfctl/perfctl.h"

#define WIDTH 80
#define HEAD_MAX 26 /* a longer head has a line of its own */

/* "-s, --switch-output[=WHEN]" */
struct head {
	char s[64];
};

static struct head head_of(const struct verb_option *o)
{
	bool optional = o->argument && *o->argument == '[';
	const char *before = !o->argument ? "" : optional ? "[=" : " ";
	const char *argument = o->argument ? o->argument + optional : "";
	struct head h;

	if (!o->letter)
		snprintf(h.s, sizeof(h.s), "--%s%s%s", o->name, before, argument);
	else if (!o->name)
		snprintf(h.s, sizeof(h.s), "-%c%s%s", o->letter, before, argument);
	else
		snprintf(h.s, sizeof(h.s), "-%c, --%s%s%s", o->letter, o->name, before, argument);
	return h;
}

static void print_wrapped(const char *text, int indent, FILE *f)
{
	int column = indent;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (column > indent && column + 1 + n > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(f, "%s%.*s", column > indent ? " " : "", n, text);
		text += n + !!text[n];
	}
	fputc('\n', f);
}

static void print_rows(const struct verb_option *rows, int indent, FILE *f)
{
	for (; rows->take; rows++) {
		struct head h = head_of(rows);

		if ((int)strlen(h.s) > HEAD_MAX)
			fprintf(f, "  %s\n%*s", h.s, indent, "");
		else
			fprintf(f, "  %-*s", indent - 2, h.s);
		print_wrapped(rows->help, indent, f);
	}
}

/* The column at which the help texts of all these tables begin. */
static int indent_of(const struct option_table *tables)
{
	size_t widest = 0;

	for (; tables->rows; tables++)
		for (const struct verb_option *o = tables->rows; o->take; o++) {
			struct head h = head_of(o);

			if (strlen(h.s) <= HEAD_MAX)
				widest = MAX(widest, strlen(h.s));
		}
	return (int)widest + 4;
}

static void print_tables(const struct option_table *tables, FILE *f)
{
	int indent = indent_of(tables);

	for (; tables->rows; tables++) {
		if (tables->title)
			fprintf(f, "\n%s\n", tables->title);
		print_rows(tables->rows, indent, f);
	}
}

static void print_overview(FILE *f)
{
	static const struct option_table global[] = { { .rows = global_options }, {} };

	fputs("perfctl - persistent perf events: always recording, readable at any time\n"
	      "\n"
	      "Usage: perfctl [OPTIONS] VERB ...\n"
	      "\n"
	      "Verbs:\n",
	      f);
	for (const struct verb *const *v = verbs; *v; v++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%s%s", (*v)->name, (*v)->letter ? ", " : "",
			 (*v)->letter ?: "");
		fprintf(f, "  %-12s %s\n", name, (*v)->summary);
	}
	fputs("\nOptions, before or after the verb:\n", f);
	print_tables(global, f);
	fputs("\n"
	      "An event's NAME is NAMESPACE/NAME, or NAME alone in the namespace `default`.\n"
	      "\n"
	      "Examples:\n"
	      "  perfctl create switches -e sched:sched_switch -m 4M\n"
	      "  perfctl list\n"
	      "  perfctl reopen switches -n 20\n"
	      "  perfctl reopen switches -f\n"
	      "  perfctl delete switches\n"
	      "\n"
	      "Exit codes: 0 done, 1 failed, 2 bad usage, 3 not found, 4 not allowed,\n"
	      "5 daemon not running, 6 name already taken.\n",
	      f);
}

void print_help(const struct verb *verb, FILE *f)
{
	if (!verb || verb == &verb_help) {
		print_overview(f);
		return;
	}
	fprintf(f, "perfctl %s - %s\n\nUsage: perfctl %s%s%s\n", verb->name, verb->summary,
		verb->name, *verb->synopsis ? " " : "", verb->synopsis);
	if (verb->letter)
		fprintf(f, "       perfctl %s %s\n", verb->letter, verb->synopsis);
	fputc('\n', f);
	for (const struct verb *const *p = verb->parts; p && *p; p++)
		fprintf(f, "  %-12s %s\n", part_name(*p), (*p)->summary);
	if (verb->parts)
		fprintf(f, "\nSee `perfctl %s COMMAND --help`.\n\n", verb->name);
	if (verb->options[0].rows) {
		print_tables(verb->options, f);
		fputc('\n', f);
	}
	fprintf(f, "%s\nGlobal options and exit codes: `perfctl --help`.\n", verb->help);
}

static int run(struct call *call)
{
	const struct verb *verb = NULL;

	if (!options_read(call, NULL))
		return call->code;
	if (call->n_operands > 2)
		return bad_usage(call, "help takes at most one verb");
	if (call->n_operands)
		verb = find_verb(call->operands[0]);
	if (verb && call->n_operands > 1)
		verb = find_part(verb, call->operands[1]);
	if (call->n_operands && !find_verb(call->operands[0]))
		return unknown_verb(call, call->operands[0]);
	if (call->n_operands && !verb)
		return bad_usage(call, "unknown verb %s%s%s", call->operands[0],
				 call->n_operands > 1 ? " " : "",
				 call->n_operands > 1 ? call->operands[1] : "");
	print_help(verb, stdout);
	return EXIT_OK;
}

const struct verb verb_help = {
	.name = "help",
	.synopsis = "[VERB]",
	.summary = "show a verb's options and examples, as `perfctl VERB --help` does",
	.run = run,
	.operands = COMPLETE_VERB,
	.one_operand = true,
};
