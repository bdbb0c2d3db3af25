// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds out what can stand at the cursor, from the option tables and the words before it. */
#include "client/perfctl/completion/complete.h"

#include <string.h>

/* ── The line ───────────────────────────────────────────────────────────────────────────── */

struct line {
	char **words;
	int n;			 /* the last is at the cursor */
	int command;		 /* where one begins; 0: there is none */
	size_t operands;	 /* before the cursor */
	bool ended;		 /* by "--": all else are operands */
	enum completes operand;	 /* what they are */
	struct option_list list; /* options that count by now */
};

static const struct verb_option *find_long(const struct line *l, const char *name, size_t len)
{
	for (size_t i = 0; i < l->list.n; i++) {
		const struct verb_option *o = l->list.rows[i];

		if (o->name && strlen(o->name) == len && !memcmp(o->name, name, len))
			return o;
	}
	return NULL;
}

static const struct verb_option *find_letter(const struct line *l, char letter)
{
	for (size_t i = 0; i < l->list.n; i++)
		if (l->list.rows[i]->letter == letter)
			return l->list.rows[i];
	return NULL;
}

/* The option in a word, and its value or NULL; the last of several letters. */
static const struct verb_option *option_of(const struct line *l, const char *word,
					   const char **ret_value)
{
	const struct verb_option *o = NULL;
	size_t n;

	*ret_value = NULL;
	if (!strncmp(word, "--", 2)) {
		n = strcspn(word + 2, "=");
		if (word[2 + n])
			*ret_value = word + 2 + n + 1;
		return find_long(l, word + 2, n);
	}
	for (word++; *word; word++) {
		o = find_letter(l, *word);
		if (!o)
			return NULL;
		if (o->argument && word[1]) {
			*ret_value = word + 1;
			return o;
		}
	}
	return o;
}

/* Applies options that say where the events are, or which operands follow. */
static void note_option(struct completion *c, struct line *l, const struct verb_option *o,
			const char *value)
{
	struct given g = { .call = &c->call, .option = o, .value = value };

	if (o->operands)
		l->operand = o->operands;
	if (o->name && !strcmp(o->name, "presets"))
		c->presets = value;
	for (size_t i = 0; i < l->list.n_global; i++)
		if (l->list.rows[i] == o && o->argument) {
			g.to = (char *)&c->call + o->to;
			o->take(&g);
		}
}

static void note_word(struct completion *c, struct line *l, const char *word)
{
	if (c->call.verb && !c->call.verb->parts) {
		l->operands++;
		return;
	}
	c->call.verb = c->call.verb ? find_part(c->call.verb, word) : find_verb(word);
	option_list_make(&l->list, c->call.verb);
	l->operand = c->call.verb ? c->call.verb->operands : COMPLETE_NOTHING;
}

/* All words before the cursor. */
static void read_line(struct completion *c, struct line *l)
{
	for (int i = 0; i < l->n - 1 && !l->command; i++) {
		const struct verb_option *o;
		const char *word = l->words[i], *value;

		if (l->ended || *word != '-' || (!c->call.verb && find_verb(word))) {
			note_word(c, l, word);
			continue;
		}
		if (!strcmp(word, "--")) {
			/* Before the verb, "--" ends only the global options. */
			l->ended = c->call.verb != NULL;
			if (l->ended && c->call.verb->runs_command)
				l->command = i + 1;
			continue;
		}
		o = option_of(l, word, &value);
		if (!o)
			continue;
		if (o->argument && *o->argument != '[' && !value) {
			if (i + 1 == l->n - 1) {
				c->option = o;
				return;
			}
			value = l->words[++i];
		}
		note_option(c, l, o, value);
	}
}

/* ── Output ─────────────────────────────────────────────────────────────────────────────── */

static void offer_options(struct completion *c, const struct line *l)
{
	c->what = "option";
	for (size_t i = 0; i < l->list.n; i++) {
		const struct verb_option *o = l->list.rows[i];

		if (o->letter)
			candidates_add(c, o->help, "-%c", o->letter);
		if (o->name)
			candidates_add(c, o->help, "--%s", o->name);
	}
}

static void offer(struct completion *c, const struct line *l)
{
	const struct verb *verb = c->call.verb;
	const struct verb_option *o = NULL;
	const char *value = NULL;

	if (!c->option && !l->ended && *c->word == '-') {
		o = option_of(l, c->word, &value);
		if (!o || !o->argument || !value)
			return offer_options(c, l);
		c->option = o;
		c->text = value;
	}
	if (c->option) {
		c->kind = c->option->completes;
		c->what = c->option->argument;
	} else if (!verb || !verb->one_operand || !l->operands) {
		c->kind = l->operand;
		c->operands = l->operands;
		c->what = "operand";
	}
	candidates_find(c);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct candidate *)a)->text, ((const struct candidate *)b)->text);
}

static void print(struct completion *c)
{
	printf("%s\n%s\n%.*s\n", c->how, c->what, (int)(c->text - c->word), c->word);
	if (c->n)
		qsort(c->found, c->n, sizeof(*c->found), compare);
	for (size_t i = 0; i < c->n; i++) {
		const struct candidate *one = &c->found[i];

		if (!i || strcmp(one->text, one[-1].text) != 0)
			printf("%s%s%s\n", one->text, one->about ? "\t" : "", one->about ?: "");
	}
}

int complete(int n, char **words)
{
	struct completion c = { .how = "list", .what = "" };
	struct line l = { .words = words, .n = n, .operand = COMPLETE_VERB };

	if (n < 1)
		return EXIT_USAGE;
	c.word = c.text = words[n - 1];
	option_list_make(&l.list, NULL);
	read_line(&c, &l);
	if (l.command) {
		printf("command\ncommand\n%d\n", l.command + 1);
		return EXIT_OK;
	}
	offer(&c, &l);
	print(&c);
	for (size_t i = 0; i < c.n; i++) {
		free(c.found[i].text);
		free(c.found[i].about);
	}
	free(c.found);
	return EXIT_OK;
}
