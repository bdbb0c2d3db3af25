/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `perfctl --complete WORD...`: the shells' functions ask it what can stand at the cursor. The
 * WORDs are those after `perfctl`; the last one ends at the cursor. It prints, a line each:
 *
 *     how the shell goes on: list (the lines below are all), file, directory (it adds existing
 *         ones), file: (likewise, with a colon after a file), command (one begins)
 *     a description of the word, for people
 *     the part of the last word that stays; where a command begins, the number of its word, from 1
 *     then, sorted, the candidates that can follow that part, each with an optional tab and
 *         description
 *
 * It changes nothing, and starts no daemon if the registry's files are enough.
 */
#pragma once

#include "client/perfctl/perfctl.h"

struct candidate {
	char *text;
	char *about; /* NULL: none */
};

struct completion {
	struct call call; /* the verb, and the global options that were typed */
	const char *how, *what;
	const char *word;		  /* at the cursor */
	const char *text;		  /* the part of it that is completed */
	const struct verb_option *option; /* whose value it is; NULL: an operand */
	enum completes kind;
	size_t operands;     /* before the cursor */
	const char *presets; /* the directory that was typed for them; NULL: none */
	struct candidate *found;
	size_t n;
};

/* Returns an exit code. */
int complete(int n, char **words);

/* ── candidates.c ── */

/* Adds the candidates of c->kind; may move c->text, and change c->how. */
void candidates_find(struct completion *c);

/* Adds a candidate that begins with c->text, if a terminal can show it. */
void candidates_add(struct completion *c, const char *about, const char *fmt, ...) _printf_(3, 4);
