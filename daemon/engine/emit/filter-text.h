/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Comparing text in a BPF program: with a constant, with its beginning, with a glob. Knows nothing
 * of fields or of where the text came from.
 *
 * A glob is matched by walking the text once. Each element of it (a character, a class, ?) is a
 * bit of a state; the bits that are set say how much of the glob may be behind us. A character
 * keeps those whose element it is (a table says which) and moves them on by one; at stars they may
 * stay, too. No step back, whatever the glob; and a loop that the verifier walks in as many steps
 * as the text can have.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/emit/emit.h"
#include "daemon/filter.h"

#define TEXT_MAX (PP_FILTER_TEXT_SIZE - 1)    /* so much of a text is looked at */
#define GLOB_WORDS (PP_FILTER_TEXT_SIZE / 64) /* of 64 bits, of the state of the longest glob */

/* Text in memory that the program can read: up to a NUL, or `limit` bytes. */
struct text_place {
	int reg; /* R6..R10 */
	int off;
	uint32_t limit;
};

enum text_kind {
	TEXT_EQUAL,
	TEXT_PREFIX, /* a glob with one star, at its end */
	TEXT_GLOB,
};

/* What text is compared with. */
struct text_pattern {
	enum text_kind kind;
	char text[PP_FILTER_TEXT_SIZE]; /* EQUAL, PREFIX */
	unsigned n;			/* bytes of text; GLOB: elements */
	unsigned words;			/* GLOB: of the state */
	uint64_t stars[GLOB_WORDS];	/* elements before which anything may stand */
	uint32_t table;			/* GLOB: where its table is in the map of tables */
};

/* Tables of globs, in one map: a program can name few maps. */
struct text_tables {
	uint64_t *words;
	size_t n;
	int fd; /* -EBADF until text_tables_make(); then the caller's */
};

void text_tables_done(struct text_tables *tables); /* not the fd */

/* What the text of a filter means; adds the table of a glob. 0 or -ENOMEM. */
int text_pattern(const char *text, bool is_glob, struct text_tables *tables,
		 struct text_pattern *ret);
/* Makes the map, if there are any tables. -errno. */
int text_tables_make(struct text_tables *tables);

/* How many bytes it takes the program to walk to compare a text of at most `limit` bytes: what is
 * compared at once takes an eighth, and what takes a state of several words as much for each. */
uint32_t text_work(const char *text, bool is_glob, uint32_t limit);

/* How many bytes of a text must be known to compare it. */
uint32_t text_needed(const struct text_pattern *pattern);

/*
 * Falls through if they match; else takes one of the jumps added to *mismatch. R0..R5 are lost; of
 * the stack, 8 * GLOB_WORDS bytes below FRAME + stack.
 */
void emit_text(struct emitter *e, const struct text_pattern *pattern,
	       const struct text_place *place, int tables_fd, int stack,
	       struct emit_labels *mismatch);
