// SPDX-License-Identifier: LGPL-2.1-or-later
/* Emits conditions. See condition.h. */
#include "daemon/engine/emit/condition.h"

#include "daemon/engine/emit/filter-leaf.h"
#include "daemon/engine/emit/guard.h"
#include "proto/macro.h"

enum { R0, R1, R2, R3, R4, R5, FRAME = BPF_REG_10 };

#define SECOND 1000000000
#define GOLDEN 0x9e3779b97f4a7c15ULL /* 2^64 divided by the golden ratio: Fibonacci hashing */
#define BUCKET_SIZE_BITS 7
_Static_assert(PP_PAIRS_WAYS * sizeof(struct pp_pair) == 1 << BUCKET_SIZE_BITS, "a bucket");
_Static_assert(CONDITION_STACK <= FILTER_STACK_SMALL, "stack");

/* Places on the stack. */
static int key_place(const struct filter_view *view)
{
	return view->stack - 8;
}

static int newest_place(const struct filter_view *view)
{
	return view->stack - 16;
}

/* In a bucket at R2. */
static int key_of(int way)
{
	return way * (int)sizeof(struct pp_pair) + (int)offsetof(struct pp_pair, key);
}

static int since_of(int way)
{
	return way * (int)sizeof(struct pp_pair) + (int)offsetof(struct pp_pair, since);
}

static void emit_count(struct emitter *e, const struct recorder_condition *c, size_t offset)
{
	emit_load_map_value(e, R2, c->trigger_fd, 0);
	emit_mov_imm(e, R3, 1);
	emit_fetch_add(e, R2, (int)offset, R3);
}

/* ── pairs ──────────────────────────────────────────────────────────────────────────────── */

/* R1 = the key, R2 = its bucket, R5 = the time. Numbers of any size are equal if their values are. */
static int emit_bucket(const struct filter_state *s, const struct recorder_condition *c,
		       const char *field)
{
	struct emitter *e = s->e;
	struct filter_number number;
	int r = filter_emit_number(s, field, &number);

	if (r < 0)
		return r;
	if (number.is_signed && number.size < 8) {
		emit_alu_imm(e, BPF_LSH, R1, 64 - 8 * (int)number.size);
		emit_alu_imm(e, BPF_ARSH, R1, 64 - 8 * (int)number.size);
	}
	emit_store(e, 8, FRAME, key_place(s->view), R1);
	emit_call(e, BPF_FUNC_ktime_get_ns);
	emit_mov(e, R5, R0);
	emit_load(e, 8, R1, FRAME, key_place(s->view));
	emit_load_imm64(e, R3, GOLDEN);
	emit_alu(e, BPF_MUL, R3, R1);
	emit_alu_imm(e, BPF_RSH, R3, 64 - PP_PAIRS_BUCKETS_BITS);
	emit_alu_imm(e, BPF_LSH, R3, BUCKET_SIZE_BITS);
	emit_load_map_value(e, R2, c->pairs_fd, 0);
	emit_alu(e, BPF_ADD, R2, R3);
	return 0;
}

/*
 * R3 = when the pair in this way began; takes *other unless it has begun and has the key R1. The key is
 * read after `since`, so that it is this pair's if `since` is still R3 in a later exchange; CPUs that
 * reorder loads do not do so if the address of the second depends on the first.
 */
static void emit_find(struct emitter *e, int way, struct emit_labels *other)
{
	int base = R2;

	emit_load(e, 8, R3, R2, since_of(way));
	emit_later(e, other, emit_jump_imm(e, BPF_JLE, R3, PP_PAIR_TAKEN));
#ifndef __x86_64__
	emit_mov(e, R4, R3);
	emit_alu_imm(e, BPF_AND, R4, 0);
	emit_alu(e, BPF_ADD, R4, R2);
	base = R4;
#endif
	emit_load(e, 8, R4, base, key_of(way));
	emit_later(e, other, emit_jump_reg(e, BPF_JNE, R4, R1));
}

/* The pair's `since` becomes `to`, if it is still R3; else takes *other. */
static void emit_step(struct emitter *e, int way, int to, struct emit_labels *other)
{
	emit_mov(e, R0, R3);
	emit_compare_exchange(e, R2, since_of(way), to);
	emit_later(e, other, emit_jump_reg(e, BPF_JNE, R0, R3));
}

/* A pair with this key begins: it replaces one that has begun and not ended. */
static void emit_begin(struct emitter *e, const struct recorder_condition *c,
		       struct emit_labels *no)
{
	_cleanup_(emit_labels_done) struct emit_labels other = {};

	for (int way = 0; way < PP_PAIRS_WAYS; way++) {
		emit_find(e, way, &other);
		emit_step(e, way, R5, &other);
		emit_later(e, no, emit_jump(e));
		emit_land_all(e, &other);
	}
	for (int way = 0; way < PP_PAIRS_WAYS; way++) {
		emit_load(e, 8, R3, R2, since_of(way));
		emit_later(e, &other, emit_jump_imm(e, BPF_JNE, R3, PP_PAIR_FREE));
		emit_mov_imm(e, R4, PP_PAIR_TAKEN);
		emit_step(e, way, R4, &other);
		emit_store(e, 8, R2, key_of(way), R1);
		emit_exchange(e, R2, since_of(way), R5);
		emit_later(e, no, emit_jump(e));
		emit_land_all(e, &other);
	}
	emit_count(e, c, offsetof(struct pp_trigger, unkept));
	emit_later(e, no, emit_always(e, R1)); /* the record's code is behind it */
}

/*
 * The pair with this key ends. Two CPUs that begin one at the same time can make two of it, of which the
 * later counts, so all ways are looked at.
 */
static void emit_end(struct emitter *e, const struct recorder_condition *c, int newest,
		     struct emit_labels *no)
{
	_cleanup_(emit_labels_done) struct emit_labels other = {};

	emit_store_imm(e, 8, FRAME, newest, 0);
	for (int way = 0; way < PP_PAIRS_WAYS; way++) {
		emit_find(e, way, &other);
		emit_mov_imm(e, R4, PP_PAIR_FREE);
		emit_step(e, way, R4, &other);
		emit_load(e, 8, R4, FRAME, newest);
		emit_later(e, &other, emit_jump_reg(e, BPF_JGE, R4, R3));
		emit_store(e, 8, FRAME, newest, R3);
		emit_land_all(e, &other);
	}
	emit_load(e, 8, R3, FRAME, newest);
	emit_later(e, no, emit_jump_imm(e, BPF_JEQ, R3, 0));
	/* Signed: another CPU may have read a later time for the beginning. */
	emit_alu(e, BPF_SUB, R5, R3);
	emit_load_imm64(e, R4, c->is.longer_than);
	emit_later(e, no, emit_jump_reg(e, BPF_JSLE, R5, R4));
}

static bool begins(const struct source *source, const struct pp_condition *condition)
{
	return source->term < condition->n_on;
}

static int emit_pair(struct emitter *e, const struct source *source,
		     const struct recorder_condition *c, const struct filter_view *view,
		     struct emit_labels *no, struct failure *f)
{
	const struct filter_state s = { .e = e, .view = view, .f = f, .what = "key" };
	bool first = begins(source, &c->is);
	int r = emit_bucket(&s, c, c->is.key[!first]);

	if (r < 0)
		return r;
	if (first)
		emit_begin(e, c, no);
	else
		emit_end(e, c, newest_place(view), no);
	return 0;
}

/* ── rates ──────────────────────────────────────────────────────────────────────────────── */

#define WINDOW (int)offsetof(struct pp_trigger, window)
#define OVER (int)offsetof(struct pp_trigger, over)
#define TURNS 4 /* tries to begin a new second, each because another CPU changed the word */

/*
 * R3 = how many came in this second before, R5 = the second. Each occurrence is counted once: who loses
 * all tries counts in the second that the word has.
 */
static void emit_count_in_second(struct emitter *e)
{
	_cleanup_(emit_labels_done) struct emit_labels present = {}, other = {}, first = {};

	for (int i = 0; i < TURNS; i++) {
		emit_load(e, 8, R3, R2, WINDOW);
		emit_mov(e, R4, R3);
		emit_alu_imm(e, BPF_RSH, R4, 32);
		emit_later(e, &present, emit_jump_reg(e, BPF_JGE, R4, R5));
		emit_mov(e, R4, R5);
		emit_alu_imm(e, BPF_LSH, R4, 32);
		emit_alu_imm(e, BPF_OR, R4, 1);
		emit_mov(e, R0, R3);
		emit_compare_exchange(e, R2, WINDOW, R4);
		emit_later(e, &other, emit_jump_reg(e, BPF_JNE, R0, R3));
		emit_mov_imm(e, R3, 0);
		emit_later(e, &first, emit_jump(e));
		emit_land_all(e, &other);
	}
	emit_land_all(e, &present);
	emit_mov_imm(e, R3, 1);
	emit_fetch_add(e, R2, WINDOW, R3);
	emit_mov(e, R5, R3);
	emit_alu_imm(e, BPF_RSH, R5, 32);
	emit_alu_imm(e, BPF_LSH, R3, 32);
	emit_alu_imm(e, BPF_RSH, R3, 32);
	emit_land_all(e, &first);
}

/* R1 = how many seconds in a row, with R5, were above the rate. One occurrence of a second comes here. */
static void emit_seconds_in_row(struct emitter *e)
{
	emit_label alone;

	emit_load(e, 8, R3, R2, OVER);
	emit_mov(e, R4, R3);
	emit_alu_imm(e, BPF_RSH, R4, 32);
	emit_alu_imm(e, BPF_ADD, R4, 1);
	emit_mov_imm(e, R1, 0);
	alone = emit_jump_reg(e, BPF_JNE, R4, R5);
	emit_mov(e, R1, R3);
	emit_alu_imm(e, BPF_LSH, R1, 32);
	emit_alu_imm(e, BPF_RSH, R1, 32);
	emit_land(e, alone);
	emit_alu_imm(e, BPF_ADD, R1, 1);
}

static void emit_rate(struct emitter *e, const struct recorder_condition *c, struct emit_labels *no)
{
	emit_label enough;

	emit_call(e, BPF_FUNC_ktime_get_ns);
	emit_mov(e, R5, R0);
	emit_alu_imm(e, BPF_DIV, R5, SECOND);
	emit_load_map_value(e, R2, c->trigger_fd, 0);
	emit_count_in_second(e);
	emit_later(e, no, emit_jump_imm64(e, BPF_JNE, R3, c->is.rate, R4));
	emit_seconds_in_row(e);
	emit_alu_imm(e, BPF_LSH, R5, 32);
	enough = emit_jump_imm(e, BPF_JGE, R1, (int32_t)c->is.seconds);
	emit_alu(e, BPF_OR, R5, R1);
	emit_store(e, 8, R2, OVER, R5);
	emit_later(e, no, emit_jump(e));
	/* It fires, and begins to count seconds again. */
	emit_land(e, enough);
	emit_store(e, 8, R2, OVER, R5);
}

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

int condition_emit(struct emitter *e, const struct source *source,
		   const struct recorder_target *target, const struct filter_view *view,
		   struct emit_labels *no, struct failure *f)
{
	const struct recorder_condition *condition = target->condition;
	int r = 0;

	if (source->n_filter)
		r = filter_emit(e, source->filter, source->n_filter, view, no, f);
	if (r >= 0 && condition && condition->is.kind == PP_CONDITION_PAIR)
		r = emit_pair(e, source, condition, view, no, f);
	else if (r >= 0 && condition && condition->is.kind == PP_CONDITION_RATE)
		emit_rate(e, condition, no);
	if (r < 0)
		return r;
	emit_fire(e, target);
	return e->error;
}
