// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing into rings, emitted. See ring-emit.h. */
#include "daemon/engine/emit/ring-emit.h"

#include "daemon/engine/emit/closing.h"
#include "proto/macro.h"
#include "proto/ring.h"

enum { R0, R1, R2, R3, R4, R5, RING = RING_RING, POS = RING_POS, FRAME = RING_FRAME };

/* A program can name 64 maps. So many rings are reached without a look-up; the others are the map
 * of all rings, those of wakeups, that of events without a ring, the chains', a filter's tables, and the five of
 * a trigger (with its pairs), or those of its target. */
#define DIRECT_MAX 51

#define TRIES 4 /* each retry means that another writer came between */

#define LIVE(word) (PP_RING_LIVE_OFFSET + (int)offsetof(struct pp_ring_live, word))

void emit_element(struct emitter *e, struct emit_labels *none)
{
	emit_store_imm(e, 4, FRAME, RING_STACK_ZERO, 0);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, RING_STACK_ZERO);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	emit_later(e, none, emit_jump_imm(e, BPF_JEQ, R0, 0));
}

/* ── finding ────────────────────────────────────────────────────────────────────────────── */

/*
 * RING = the ring of CPU R0, if it is one of [begin, end): halves the range until one is left.
 * Appends the jumps that leave with the ring; falls through if there is none.
 */
static void emit_direct(struct emitter *e, const struct recorder_target *target, unsigned begin,
			unsigned end, struct emit_labels *found)
{
	unsigned middle = begin + (end - begin) / 2;
	emit_label other;

	if (end - begin == 1) {
		other = emit_jump_imm(e, BPF_JNE, R0, (int)target->cpu[begin]);
		emit_load_map_value(e, RING, target->ring_fd[begin], 0);
		emit_later(e, found, emit_jump(e));
		emit_land(e, other);
		return;
	}
	other = emit_jump_imm(e, BPF_JGE, R0, (int)target->cpu[middle]);
	emit_direct(e, target, begin, middle, found);
	emit_land(e, other);
	emit_direct(e, target, middle, end, found);
}

/* Counts a CPU without a ring, and leaves; goes on with R0 if that is a ring. */
static void emit_ringless(struct emitter *e, const struct recorder_target *target,
			  struct emit_labels *no_ring)
{
	emit_label has_ring = emit_jump_imm(e, BPF_JNE, R0, 0);

	emit_load_map(e, R1, target->ringless_fd);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, RING_STACK_CPU);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	emit_later(e, no_ring, emit_jump_imm(e, BPF_JEQ, R0, 0));
	emit_mov_imm(e, R1, 1);
	emit_fetch_add(e, R0, 0, R1);
	emit_later(e, no_ring, emit_jump(e));
	emit_land(e, has_ring);
}

/*
 * The look-ups serve rings that are added later, and large machines: they cost half as much as the
 * copying.
 */
void emit_ring_find(struct emitter *e, const struct recorder_target *target,
		    struct emit_labels *no_ring)
{
	_cleanup_(emit_labels_done) struct emit_labels found = {};

	emit_call(e, BPF_FUNC_get_smp_processor_id);
	if (target->n > 0 && target->n <= DIRECT_MAX)
		emit_direct(e, target, 0, target->n, &found);
	emit_store(e, 4, FRAME, RING_STACK_CPU, R0);
	emit_load_map(e, R1, target->fd);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, RING_STACK_CPU);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	if (target->ringless_fd >= 0)
		emit_ringless(e, target, no_ring);
	else
		emit_later(e, no_ring, emit_jump_imm(e, BPF_JEQ, R0, 0));
	emit_mov(e, R1, R0);
	emit_element(e, no_ring);
	emit_mov(e, RING, R0);
	emit_land_all(e, &found);
}

/* ── words ──────────────────────────────────────────────────────────────────────────────── */

void emit_ring_count(struct emitter *e, const struct recorder_target *target, int offset)
{
	if (target->nests) {
		emit_mov_imm(e, R1, 1);
		emit_fetch_add(e, RING, offset, R1);
		return;
	}
	emit_load(e, 8, R1, RING, offset);
	emit_alu_imm(e, BPF_ADD, R1, 1);
	emit_store(e, 8, RING, offset, R1);
}

void emit_ring_missed(struct emitter *e, const struct recorder_target *target)
{
	emit_ring_count(e, target, LIVE(missed));
}

/*
 * Writes a live word so that other CPUs see it after all earlier writes, and before all later ones.
 * x86 keeps stores in order; elsewhere that takes an exchange, a full barrier, which uses R1 and
 * R2.
 */
static void emit_publish(struct emitter *e, int word, int src)
{
#if defined(__x86_64__) || defined(__i386__)
	emit_store(e, 8, RING, word, src);
#else
	if (src != R1)
		emit_mov(e, R1, src);
	emit_mov(e, R2, RING);
	emit_alu_imm(e, BPF_ADD, R2, word);
	emit_exchange(e, R2, 0, R1);
#endif
}

/* ── reserving ──────────────────────────────────────────────────────────────────────────── */

/* bpf/ring.bpf.h explains these checks. */
static void emit_reserve_alone(struct emitter *e, const struct recorder_target *target,
			       uint32_t size, struct emit_labels *no_room)
{
	emit_label alone;

	emit_load(e, 8, POS, RING, LIVE(head));
	emit_load(e, 8, R2, RING, LIVE(reserve));
	alone = emit_jump_reg(e, BPF_JEQ, R2, POS);
	emit_ring_missed(e, target);
	emit_later(e, no_room, emit_jump(e));
	emit_land(e, alone);
	emit_store(e, 8, FRAME, RING_STACK_END_POSITION, POS);
	if (size)
		emit_alu_imm(e, BPF_SUB, POS, (int32_t)size);
	else
		emit_alu(e, BPF_SUB, POS, R1);
	emit_store(e, 8, FRAME, RING_STACK_HEAD, POS);
	emit_publish(e, LIVE(reserve), POS);
}

/*
 * Moves head if no other writer is active. A writer that came and went between our look at reserve
 * and our leaving has left that to us. So has a writer that left at the same time, if each saw the
 * other. So the last one looks at head itself.
 */
static void emit_leave(struct emitter *e)
{
	_cleanup_(emit_labels_done) struct emit_labels left = {};

	for (int i = 0; i < TRIES; i++) {
		emit_label others;

		if (i > 0) {
			emit_mov_imm(e, R1, 1);
			emit_fetch_add(e, RING, LIVE(nest), R1);
		}
		emit_load(e, 8, R3, RING, LIVE(reserve));
		emit_load(e, 8, R1, RING, LIVE(nest));
		others = emit_jump_imm(e, BPF_JNE, R1, 1);
		emit_publish(e, LIVE(head), R3);
		emit_land(e, others);
		emit_mov_imm(e, R1, -1);
		emit_fetch_add(e, RING, LIVE(nest), R1);
		if (i == TRIES - 1)
			break;
		emit_later(e, &left, emit_jump_imm(e, BPF_JNE, R1, 1));
		emit_load(e, 8, R1, RING, LIVE(reserve));
		emit_load(e, 8, R3, RING, LIVE(head));
		emit_later(e, &left, emit_jump_reg(e, BPF_JEQ, R1, R3));
	}
	emit_land_all(e, &left);
}

/*
 * Reads the clock between the look at reserve and the step: a faster writer makes the step fail, so
 * times only increase in a ring.
 */
static void emit_reserve_nesting(struct emitter *e, const struct recorder_target *target,
				 uint32_t size, struct emit_labels *no_room,
				 struct emit_labels *beyond)
{
	_cleanup_(emit_labels_done) struct emit_labels full = {}, got = {}, over = {};

	emit_mov_imm(e, R1, 1);
	emit_fetch_add(e, RING, LIVE(nest), R1);
	for (int i = 0; i < TRIES; i++) {
		/* In this order: head may only be too high, and the distance too long. */
		emit_load(e, 8, R1, RING, LIVE(head));
		emit_load(e, 8, POS, RING, LIVE(reserve));
		emit_mov(e, R2, POS);
		if (size) {
			emit_alu_imm(e, BPF_SUB, R2, (int32_t)size);
		} else {
			emit_load(e, 8, R3, FRAME, RING_STACK_SIZE);
			emit_alu(e, BPF_SUB, R2, R3);
		}
		emit_store(e, 8, FRAME, RING_STACK_HEAD, R2);
		emit_alu(e, BPF_SUB, R1, R2);
		emit_later(e, &full, emit_jump_imm(e, BPF_JGT, R1, (int32_t)target->data_size));
		emit_call(e, BPF_FUNC_ktime_get_ns);
		emit_store(e, 8, FRAME, RING_STACK_TIME, R0);
		emit_closing_time(e, target, &over);
		emit_mov(e, R0, POS);
		emit_load(e, 8, R2, FRAME, RING_STACK_HEAD);
		emit_compare_exchange(e, RING, LIVE(reserve), R2);
		emit_later(e, &got, emit_jump_reg(e, BPF_JEQ, R0, POS));
	}
	emit_land_all(e, &full);
	emit_ring_missed(e, target);
	emit_leave(e);
	emit_later(e, no_room, emit_jump(e));
	if (over.n) {
		emit_land_all(e, &over);
		emit_leave(e);
		emit_later(e, beyond, emit_jump(e));
	}
	emit_land_all(e, &got);
	emit_load(e, 8, POS, FRAME, RING_STACK_HEAD);
}

/* Before a place is taken in a closing side's ring. */
static void emit_closing(struct emitter *e, const struct recorder_target *target, uint32_t size,
			 struct emit_labels *beyond)
{
	emit_call(e, BPF_FUNC_ktime_get_ns);
	if (!target->nests)
		emit_store(e, 8, FRAME, RING_STACK_CLOSING, R0);
	emit_closing_time(e, target, beyond);
	emit_closing_part(e, target, beyond);
	if (!size)
		emit_load(e, 8, R1, FRAME, RING_STACK_SIZE);
}

void emit_ring_reserve(struct emitter *e, const struct recorder_target *target, uint32_t size,
		       struct emit_labels *no_room, struct emit_labels *beyond)
{
	if (target_closes(target))
		emit_closing(e, target, size, beyond);
	if (target->nests)
		emit_reserve_nesting(e, target, size, no_room, beyond);
	else
		emit_reserve_alone(e, target, size, no_room);
	emit_alu_imm(e, BPF_AND, POS, (int32_t)(target->data_size - 1));
	emit_alu(e, BPF_ADD, POS, RING);
	emit_alu_imm(e, BPF_ADD, POS, (int32_t)target->header_size);
}

void emit_ring_time(struct emitter *e, const struct recorder_target *target)
{
	if (target->nests)
		emit_load(e, 8, R0, FRAME, RING_STACK_TIME);
	else if (target_closes(target))
		emit_load(e, 8, R0, FRAME, RING_STACK_CLOSING);
	else
		emit_call(e, BPF_FUNC_ktime_get_ns);
}

void emit_ring_commit(struct emitter *e, const struct recorder_target *target)
{
	emit_label came_between, counted;

	if (target->nests) {
		emit_ring_count(e, target, LIVE(records));
		emit_leave(e);
		return;
	}
	emit_load(e, 8, R1, RING, LIVE(head));
	emit_load(e, 8, R2, FRAME, RING_STACK_END_POSITION);
	came_between = emit_jump_reg(e, BPF_JNE, R1, R2);
	emit_ring_count(e, target, LIVE(records));
	counted = emit_jump(e);
	emit_land(e, came_between);
	emit_ring_missed(e, target);
	emit_land(e, counted);
	emit_load(e, 8, R1, FRAME, RING_STACK_HEAD);
	emit_publish(e, LIVE(head), R1);
}
