// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads command lines by the option tables: the global options, which may stand before and after
 * the verb, and each verb's own. Knows no verb's options; those come with the verb.
 */
#include <getopt.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "proto/nearest.h"

#define FIRST 256 /* what getopt_long(3) returns for row 0: above all letters */

static int take_version(const struct given *g _unused_)
{
	printf("perfctl %s\n", perfpersist_version());
	return -1;
}

static int take_help(const struct given *g)
{
	print_help(g->call->verb, stdout);
	return -1;
}

const struct verb_option global_options[] = {
	{ 0, "instance", "NAME", "talk to the daemon of this instance",
	  TAKE_TEXT(struct call, connect.instance), .completes = COMPLETE_INSTANCE },
	{ 0, "socket", "PATH", "talk to the daemon at this socket",
	  TAKE_TEXT(struct call, connect.socket), .completes = COMPLETE_FILE },
	{ 0, "registry", "PATH", "the registry that --direct reads",
	  TAKE_TEXT(struct call, connect.registry), .completes = COMPLETE_DIRECTORY },
	{ 0, "direct", NULL,
	  "without a daemon: what lists, shows and reads events reads the registry, as root",
	  TAKE_FLAG(struct call, connect.direct) },
	{ 0, "saved", "[SAVE]",
	  "what lists, shows and reads events reads what `perfctl save` or a shutdown saved: the "
	  "newest save, or the one with this name or path",
	  TAKE_TEXT(struct call, connect.saved), .if_none = "", .completes = COMPLETE_SAVE },
	{ 0, "json", NULL, "write JSON", TAKE_FLAG(struct call, json) },
	{ 'h', "help", NULL, "show this text", .take = take_help },
	{ 0, "version", NULL, "show the version", .take = take_version },
	{},
};

/* ── Tables for getopt_long(3) ──────────────────────────────────────────────────────────── */

static void list_add(struct option_list *list, const struct option_table *table)
{
	for (const struct verb_option *o = table->rows; o->take && list->n < OPTIONS_MAX; o++) {
		list->rows[list->n] = o;
		list->offsets[list->n++] = table->at + o->to;
	}
}

void option_list_make(struct option_list *list, const struct verb *verb)
{
	*list = (struct option_list){};
	list_add(list, &(struct option_table){ .rows = global_options });
	list->n_global = list->n;
	for (size_t i = 0; verb && verb->options[i].rows; i++)
		list_add(list, &verb->options[i]);
}

struct parser {
	struct call *call;
	void *into; /* the verb's struct */
	struct option_list list;
	struct option longs[OPTIONS_MAX + 1];
	char shorts[3 * OPTIONS_MAX + 3];
};

static void add_short(struct parser *p, const struct verb_option *o, int has_arg)
{
	static const char *const colons[] = {
		[no_argument] = "", [required_argument] = ":", [optional_argument] = "::"
	};
	size_t n = strlen(p->shorts);

	snprintf(p->shorts + n, sizeof(p->shorts) - n, "%c%s", o->letter, colons[has_arg]);
}

/* mode: how getopt(3) treats operands. */
static void parser_make(struct parser *p, const char *mode)
{
	size_t n = 0;

	option_list_make(&p->list, p->call->verb);
	/* ":": getopt(3) tells a missing value from an unknown option. */
	snprintf(p->shorts, sizeof(p->shorts), "%s:", mode);
	for (size_t i = 0; i < p->list.n; i++) {
		const struct verb_option *o = p->list.rows[i];
		int has_arg = !o->argument	    ? no_argument
			      : *o->argument == '[' ? optional_argument
						    : required_argument;

		if (o->letter)
			add_short(p, o, has_arg);
		if (o->name)
			p->longs[n++] = (struct option){ o->name, has_arg, NULL, FIRST + (int)i };
	}
	opterr = 0;
}

/* ── Reading ────────────────────────────────────────────────────────────────────────────── */

static bool stop(struct call *call, int code)
{
	call->code = code;
	return false;
}

/* The option most similar to "--word=value"; NULL: none. */
static const char *nearest_option(const struct parser *p, const char *text, char *buf, size_t size)
{
	char word[PP_NEAREST_SIZE];
	struct pp_nearest s;

	if (strncmp(text, "--", 2) != 0)
		return NULL;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(text + 2, "="), text + 2);
	pp_nearest_begin(&s, word, strlen(word));
	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.rows[i]->name)
			pp_nearest_consider(&s, p->list.rows[i]->name);
	if (!s.best)
		return NULL;
	snprintf(buf, size, "--%s", s.best);
	return buf;
}

static bool stop_unknown(struct parser *p, int opt, char *const *argv)
{
	const char *text = argv[optind - 1];
	char letter[] = { '-', (char)optopt, '\0' }, nearest[64];

	/* A letter can be one of several in a word that optind has not left yet. */
	if (optopt && optopt < FIRST)
		text = letter;
	if (opt == ':')
		return stop(p->call, bad_usage(p->call, "option %s needs a value", text));
	return stop(p->call, unknown_word(p->call, "unknown option", text,
					  nearest_option(p, text, nearest, sizeof(nearest))));
}

/* As in perf: "-g caller,0.5". */
static bool is_value(const struct verb_option *o, const char *word)
{
	size_t n = strcspn(word, ","), len;

	for (const char *w = o->words; *w; w += len + !!w[len]) {
		len = strcspn(w, " ");
		if (len == n && !strncmp(w, word, n))
			return true;
	}
	return false;
}

static bool take(struct parser *p, int opt, char *const *argv)
{
	struct given g = { .call = p->call, .value = optarg };
	size_t i = 0;
	int r;

	if (opt == '?' || opt == ':')
		return stop_unknown(p, opt, argv);
	if (opt >= FIRST)
		i = (size_t)opt - FIRST;
	else
		while (p->list.rows[i]->letter != opt)
			i++;
	g.option = p->list.rows[i];
	g.to = (char *)(i < p->list.n_global ? p->call : p->into) + p->list.offsets[i];
	if (g.option->next_word && !g.value && argv[optind] && is_value(g.option, argv[optind]))
		g.value = argv[optind++];
	r = g.option->take(&g);
	return r ? stop(p->call, MAX(r, EXIT_OK)) : true;
}

bool options_global(struct call *call, int argc, char **argv, int *ret)
{
	struct parser p = { .call = call };
	int opt;

	parser_make(&p, "+");
	/* perf's letters for verbs end the global options as verbs do. */
	while (optind >= argc ||
	       (strcmp(argv[optind], "-l") != 0 && strcmp(argv[optind], "-d") != 0)) {
		opt = getopt_long(argc, argv, p.shorts, p.longs, NULL);
		if (opt == -1)
			break;
		if (!take(&p, opt, argv))
			return false;
	}
	*ret = optind;
	return true;
}

/* Takes the words after "--": a command if the verb runs one, else more operands. */
static void take_rest(struct call *call)
{
	if (call->verb->runs_command && !strcmp(call->argv[optind - 1], "--"))
		call->command = call->argv + optind;
	else
		while (optind < call->argc)
			call->operands[call->n_operands++] = call->argv[optind++];
}

static bool take_all(struct parser *p)
{
	struct call *call = p->call;
	int opt;

	while ((opt = getopt_long(call->argc, call->argv, p->shorts, p->longs, NULL)) != -1) {
		if (opt == 1 && call->command_follows) {
			call->command = call->argv + optind - 1;
			return true;
		}
		if (opt == 1)
			call->operands[call->n_operands++] = optarg;
		else if (!take(p, opt, call->argv))
			return false;
	}
	take_rest(call);
	return true;
}

/* Checks the operands that mean the same to every verb. */
static bool check_operands(struct call *call)
{
	const struct verb *verb = call->verb;

	if (verb->operands == COMPLETE_NOTHING && call->n_operands)
		return stop(call, bad_usage(call, "%s takes no names", verb->name));
	if (verb->operands != COMPLETE_NAMESPACE || !call->n_operands)
		return true;
	if (call->n_operands > 1)
		return stop(call, bad_usage(call, "%s takes at most one namespace", verb->name));
	if (!name_is_valid(call->operands[0]))
		return stop(call,
			    bad_usage(call, "%s: not a valid namespace name", call->operands[0]));
	return true;
}

bool options_read(struct call *call, void *into)
{
	struct parser p = { .call = call, .into = into };

	call->operands = calloc((size_t)call->argc + 1, sizeof(*call->operands));
	if (!call->operands)
		return stop(call, EXIT_FAILED);
	parser_make(&p, "-"); /* operands in order, whatever POSIXLY_CORRECT says */
	optind = 0;	      /* glibc: start over */
	return take_all(&p) && check_operands(call);
}

void options_done(struct call *call)
{
	free(call->operands);
	call->operands = NULL;
	call->n_operands = 0;
}
