/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares text in a BPF program: with a constant, with a prefix, with a glob. Knows nothing of
 * fields or of where the text came from.
 *
 * A glob is matched in one walk over the text. Each of its elements (a character, a class, ?) is a
 * bit of a state; the set bits say how much of the glob may have matched. A character keeps the
 * bits of the elements that match it (a table says which) and moves them on by one; at stars they
 * may also stay. There is no backtracking, whatever the glob, and the verifier walks the loop in as
 * many steps as the text can have bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/emit/emit.h"
#include "daemon/filter.h"

#define TEXT_MAX (PP_FILTER_TEXT_SIZE - 1)    /* bytes of a text that are compared */
#define GLOB_WORDS (PP_FILTER_TEXT_SIZE / 64) /* 64-bit words in the state of the longest glob */

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

/* The constant that text is compared with. */
struct text_pattern {
	enum text_kind kind;
	char text[PP_FILTER_TEXT_SIZE]; /* EQUAL, PREFIX */
	unsigned n;			/* bytes of text; GLOB: elements */
	unsigned words;			/* GLOB: of the state */
	uint64_t stars[GLOB_WORDS];	/* elements that anything may precede */
	uint32_t table;			/* GLOB: where its table is in the map of tables */
};

/* Tables of globs, in one map: a program can name few maps. */
struct text_tables {
	uint64_t *words;
	size_t n;
	int fd; /* -EBADF until text_tables_make(); then the caller's */
};

void text_tables_done(struct text_tables *tables); /* keeps the fd */

/* Parses the text of a filter; adds the table of a glob. 0 or -ENOMEM. */
int text_pattern(const char *text, bool is_glob, struct text_tables *tables,
		 struct text_pattern *ret);
/* Makes the map, if there are any tables. -errno. */
int text_tables_make(struct text_tables *tables);

/* How many bytes the program walks to compare a text of at most `limit` bytes: a comparison at once
 * counts an eighth of them, and a state of several words as many for each word. */
uint32_t text_work(const char *text, bool is_glob, uint32_t limit);

/* How many bytes of a text the comparison needs. */
uint32_t text_needed(const struct text_pattern *pattern);

/*
 * Falls through if they match; else takes one of the jumps added to *mismatch. Loses R0..R5, and 8
 * * GLOB_WORDS bytes of stack below FRAME + stack.
 */
void emit_text(struct emitter *e, const struct text_pattern *pattern,
	       const struct text_place *place, int tables_fd, int stack,
	       struct emit_labels *mismatch);
