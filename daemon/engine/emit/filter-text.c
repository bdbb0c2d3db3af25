// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text in filters: patterns, and the instructions that match them. See filter-text.h. */
#include "daemon/engine/emit/filter-text.h"

#include <string.h>

#include "daemon/engine/emit/template.h"
#include "proto/macro.h"

/* ── patterns ───────────────────────────────────────────────────────────────────────────── */

/* Bytes of a glob's first element, as pp_glob_match() splits it; not for a star. */
static size_t element_size(const char *glob)
{
	const char *s = glob + 1;

	if (*glob == '\\')
		return *s ? 2 : 1;
	if (*glob != '[')
		return 1;
	s += *s == '!';
	do {
		if (!*s++)
			return 1; /* a bracket that is never closed */
		if (s[0] == '-' && s[1] != ']') {
			if (!s[1])
				return 1;
			s += 2;
		}
	} while (*s != ']');
	return s + 1 - glob;
}

/* Marks the characters that the element matches: pp_glob_match() itself decides. */
static void fill_table(const char *element, size_t size, uint64_t *table, unsigned words,
		       unsigned bit)
{
	char alone[PP_FILTER_TEXT_SIZE];

	memcpy(alone, element, size);
	alone[size] = '\0';
	for (unsigned c = 1; c < 256; c++) {
		const char text[2] = { (char)c };

		if (pp_glob_match(alone, text))
			table[c * words + bit / 64] |= 1ULL << (bit % 64);
	}
}

/* A \ at the end of the text ends the glob. */
static bool is_end(const char *glob)
{
	return !*glob || !strcmp(glob, "\\");
}

static unsigned count_elements(const char *glob)
{
	unsigned n = 0;

	while (!is_end(glob)) {
		n += *glob != '*';
		glob += *glob == '*' ? 1 : element_size(glob);
	}
	return n;
}

static int add_glob(const char *glob, struct text_tables *tables, struct text_pattern *p)
{
	uint64_t *grown, *table;
	size_t size;

	p->n = count_elements(glob);
	p->words = p->n / 64 + 1; /* the bit behind the last element is the result */
	size = 256 * p->words;
	grown = reallocarray(tables->words, tables->n + size, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	tables->words = grown;
	table = grown + tables->n;
	memset(table, 0, size * sizeof(*table));
	p->table = tables->n * sizeof(*table);
	tables->n += size;

	for (unsigned bit = 0; !is_end(glob);) {
		if (*glob == '*') {
			p->stars[bit / 64] |= 1ULL << (bit % 64);
			glob++;
			continue;
		}
		fill_table(glob, element_size(glob), table, p->words, bit++);
		glob += element_size(glob);
	}
	return 0;
}

static enum text_kind kind_of(const char *text, bool is_glob)
{
	size_t plain = strcspn(text, "*?[\\");

	if (!is_glob || !text[plain])
		return TEXT_EQUAL;
	return strcmp(text + plain, "*") ? TEXT_GLOB : TEXT_PREFIX;
}

uint32_t text_work(const char *text, bool is_glob, uint32_t limit)
{
	uint32_t length = (uint32_t)strlen(text);

	if (kind_of(text, is_glob) == TEXT_GLOB)
		return MIN(limit, (uint32_t)TEXT_MAX) * (count_elements(text) / 64 + 1);
	return length / 8;
}

int text_pattern(const char *text, bool is_glob, struct text_tables *tables,
		 struct text_pattern *ret)
{
	size_t length = strlen(text);

	*ret = (struct text_pattern){ .kind = kind_of(text, is_glob) };
	if (ret->kind == TEXT_GLOB)
		return add_glob(text, tables, ret);
	ret->n = ret->kind == TEXT_PREFIX ? length - 1 : length;
	memcpy(ret->text, text, ret->n);
	return 0;
}

int text_tables_make(struct text_tables *tables)
{
	if (!tables->n)
		return 0;
	return template_constants(tables->words, tables->n * sizeof(*tables->words), &tables->fd);
}

void text_tables_done(struct text_tables *tables)
{
	free(tables->words);
	*tables = (struct text_tables){ .fd = tables->fd };
}

uint32_t text_needed(const struct text_pattern *p)
{
	return p->kind == TEXT_GLOB ? TEXT_MAX : MIN(p->n + 1, (unsigned)TEXT_MAX);
}

/* ── instructions ───────────────────────────────────────────────────────────────────────── */

enum { R0, R1, R2, R3, R4, R5, FRAME = BPF_REG_10 };

/* Compares by the widest loads that stay inside and aligned, as the stack requires. */
static void emit_same_bytes(struct emitter *e, const char *text, unsigned n,
			    const struct text_place *place, struct emit_labels *mismatch)
{
	for (unsigned i = 0; i < n;) {
		unsigned size = 8;
		uint64_t want = 0;

		while (i + size > n || (unsigned)(place->off + (int)i) % size)
			size /= 2;
		memcpy(&want, text + i, size);
		emit_load(e, (int)size, R1, place->reg, place->off + (int)i);
		emit_later(e, mismatch, emit_jump_imm64(e, BPF_JNE, R1, want, R2));
		i += size;
	}
}

static void emit_plain(struct emitter *e, const struct text_pattern *p,
		       const struct text_place *place, struct emit_labels *mismatch)
{
	if (p->n > place->limit) {
		emit_later(e, mismatch, emit_always(e, R1));
		return;
	}
	emit_same_bytes(e, p->text, p->n, place, mismatch);
	if (p->kind == TEXT_PREFIX || p->n == place->limit)
		return;
	emit_load(e, 1, R1, place->reg, place->off + (int)p->n);
	emit_later(e, mismatch, emit_jump_imm(e, BPF_JNE, R1, 0));
}

/*
 * Moves the state on by one character, word by word from the top, since each word takes over the
 * bit that leaves the one below. R3: the character's row in the table. The state is in R2, or on
 * the stack if it has several words.
 */
static void emit_step(struct emitter *e, const struct text_pattern *p, int stack)
{
	for (unsigned w = p->words; w-- > 0;) {
		if (p->words > 1)
			emit_load(e, 8, R2, FRAME, stack + 8 * (int)w);
		if (p->stars[w]) {
			emit_load_imm64(e, R5, p->stars[w]);
			emit_alu(e, BPF_AND, R5, R2);
		}
		emit_load(e, 8, R4, R3, 8 * (int)w);
		emit_alu(e, BPF_AND, R2, R4);
		emit_alu_imm(e, BPF_LSH, R2, 1);
		if (p->stars[w])
			emit_alu(e, BPF_OR, R2, R5);
		if (w > 0) {
			emit_load(e, 8, R0, FRAME, stack + 8 * (int)(w - 1));
			emit_load(e, 8, R4, R3, 8 * (int)(w - 1));
			emit_alu(e, BPF_AND, R0, R4);
			emit_alu_imm(e, BPF_RSH, R0, 63);
			emit_alu(e, BPF_OR, R2, R0);
		}
		if (p->words > 1)
			emit_store(e, 8, FRAME, stack + 8 * (int)w, R2);
	}
}

static void emit_first_state(struct emitter *e, const struct text_pattern *p, int stack)
{
	emit_mov_imm(e, R2, 1);
	if (p->words == 1)
		return;
	emit_store(e, 8, FRAME, stack, R2);
	for (unsigned w = 1; w < p->words; w++)
		emit_store_imm(e, 8, FRAME, stack + 8 * (int)w, 0);
}

/*
 * Leaves unless dst OP imm. The verifier walks the fall-through path first, here the exit and all
 * of the program behind it, and the later rounds find that already walked. So it never has more
 * than one open end of a loop to remember, and the number of globs is limited by size alone.
 */
static emit_label emit_leave_unless(struct emitter *e, int op, int dst, int32_t imm)
{
	emit_label stay = emit_jump_imm(e, op, dst, imm), leave = emit_jump(e);

	emit_land(e, stay);
	return leave;
}

static void emit_glob(struct emitter *e, const struct text_pattern *p,
		      const struct text_place *place, int tables_fd, int stack,
		      struct emit_labels *mismatch)
{
	bool open_end = p->stars[p->n / 64] >> (p->n % 64) & 1;
	emit_label again, end, done = 0;

	stack -= 8 * GLOB_WORDS;
	emit_first_state(e, p, stack);
	emit_mov_imm(e, R1, 0);
	again = emit_here(e);
	emit_mov(e, R4, place->reg);
	emit_alu(e, BPF_ADD, R4, R1);
	emit_load(e, 1, R4, R4, place->off);
	end = emit_leave_unless(e, BPF_JNE, R4, 0);
	emit_alu_imm(e, BPF_MUL, R4, 8 * (int)p->words);
	emit_load_map_value(e, R3, tables_fd, p->table);
	emit_alu(e, BPF_ADD, R3, R4);
	emit_step(e, p, stack);
	if (p->words == 1) {
		/* The state is empty; or the whole glob has matched, and a star ends it. */
		emit_later(e, mismatch, emit_leave_unless(e, BPF_JNE, R2, 0));
		if (open_end) {
			emit_mov(e, R4, R2);
			emit_alu_imm(e, BPF_RSH, R4, (int)p->n);
			emit_alu_imm(e, BPF_AND, R4, 1);
			done = emit_leave_unless(e, BPF_JEQ, R4, 0);
		}
	}
	emit_alu_imm(e, BPF_ADD, R1, 1);
	emit_jump_back_imm(e, BPF_JLT, R1, (int)MIN(place->limit, (uint32_t)TEXT_MAX), again);
	emit_land(e, end);
	if (p->words > 1)
		emit_load(e, 8, R2, FRAME, stack + 8 * (int)(p->n / 64));
	emit_alu_imm(e, BPF_RSH, R2, (int)(p->n % 64));
	emit_alu_imm(e, BPF_AND, R2, 1);
	emit_later(e, mismatch, emit_jump_imm(e, BPF_JEQ, R2, 0));
	if (p->words == 1 && open_end)
		emit_land(e, done);
}

void emit_text(struct emitter *e, const struct text_pattern *p, const struct text_place *place,
	       int tables_fd, int stack, struct emit_labels *mismatch)
{
	if (p->kind == TEXT_GLOB)
		emit_glob(e, p, place, tables_fd, stack, mismatch);
	else
		emit_plain(e, p, place, mismatch);
}
