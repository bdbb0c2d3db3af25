/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `perfctl --complete WORD...`, which the shells' functions ask what can stand at the cursor, where
 * the last WORD ends; the others are those behind `perfctl`. It says, a line each:
 *
 *     how the shell goes on: list (what follows is all), file, directory (it adds those that
 *         there are), file: (likewise, and a colon behind a file), command (one begins)
 *     what is wanted, for people
 *     what of the last word stays as it is; where a command begins, the number of its word, from 1
 *     then, sorted, what can follow that, with a tab and what it is about, if there is more to say
 *
 * Nothing is changed by it, and no daemon is started if the registry's files say it all.
 */
#pragma once

#include "client/perfctl/perfctl.h"

struct candidate {
	char *text;
	char *about; /* NULL: nothing */
};

struct completion {
	struct call call; /* the verb, and the global options that were typed */
	const char *how, *what;
	const char *word;		  /* at the cursor */
	const char *text;		  /* the part of it that is completed */
	const struct verb_option *option; /* whose value it is; NULL: an operand */
	enum completes kind;
	struct candidate *found;
	size_t n;
};

/* Returns an exit code. */
int complete(int n, char **words);

/* ── candidates.c ── */

/* Adds what there is of c->kind; may move c->text, and change c->how. */
void candidates_find(struct completion *c);

/* Adds one, if c->text begins it and a terminal can show it. */
void candidates_add(struct completion *c, const char *about, const char *fmt, ...) _printf_(3, 4);
