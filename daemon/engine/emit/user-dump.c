// SPDX-License-Identifier: LGPL-2.1-or-later
/* Registers and stack of user space, emitted. See user-dump.h. */
#include "daemon/engine/emit/user-dump.h"

#include <stddef.h>

#include "daemon/engine/kernel/kernel.h"
#include "proto/macro.h"
#include "proto/perf-record.h"

enum { R0, R1, R2, R3, POS = RING_POS, DUMP = BPF_REG_9, FRAME = RING_FRAME };

#define PLACE(name) ((int)offsetof(bpf_user_pt_regs_t, name))
#define FRONT USER_DUMP_STACK_FRONT
#define SIZE USER_DUMP_STACK_SIZE

_Static_assert(USER_DUMP_STACK_MAX == PP_STACK_USER_MAX, "the largest stack");

/* In perf.data a record can be larger by 32 bytes; a record with a stack has room for them, as its front
 * counts the marks of two halves of a call chain and has one half. */
uint32_t user_dump_stack(uint32_t wanted, uint32_t front)
{
	return wanted ? MIN(wanted, (PP_RECORD_SIZE_MAX - USER_DUMP_SIZE(0) - front) & ~7U) : 0;
}

/* R0 = those of the current task. R1..R5 are lost. */
static void emit_regs(struct emitter *e)
{
	emit_call(e, BPF_FUNC_get_current_task_btf);
	emit_mov(e, R1, R0);
	emit_call(e, BPF_FUNC_task_pt_regs);
}

/* POS = the stack pointer. Takes *none for a task without memory of its own, and for others that have not
 * come from user space. */
static void emit_stack_pointer(struct emitter *e, struct emit_labels *none)
{
	int mm = kernel_task_mm();

	if (mm < 0) {
		e->error = mm;
		return;
	}
	emit_call(e, BPF_FUNC_get_current_task_btf);
	emit_mov(e, R1, R0);
	emit_load(e, 8, R2, R1, mm);
	emit_later(e, none, emit_jump_imm(e, BPF_JEQ, R2, 0));
	emit_call(e, BPF_FUNC_task_pt_regs);
	emit_load(e, USER_REGS_MODE_BYTES, R1, R0, PLACE(USER_REGS_MODE));
	emit_alu_imm(e, BPF_AND, R1, USER_REGS_MODE_MASK);
	emit_later(e, none, emit_jump_imm(e, BPF_JNE, R1, USER_REGS_MODE_USER));
	emit_load(e, 8, POS, R0, PLACE(USER_REGS_SP));
	emit_later(e, none, emit_jump_imm(e, BPF_JEQ, POS, 0));
}

/* POS, the stack pointer, becomes the first byte that cannot be read, or is beyond what is wanted. */
static void emit_pages(struct emitter *e, uint32_t stack)
{
	_cleanup_(emit_labels_done) struct emit_labels end = {};

	for (uint32_t i = 0; i < USER_DUMP_PAGES(stack); i++) {
		emit_mov(e, R1, FRAME);
		emit_alu_imm(e, BPF_ADD, R1, FRONT);
		emit_mov_imm(e, R2, 1);
		emit_mov(e, R3, POS);
		emit_call(e, BPF_FUNC_probe_read_user);
		emit_later(e, &end, emit_jump_imm(e, BPF_JNE, R0, 0));
		emit_alu_imm(e, BPF_OR, POS, USER_DUMP_PAGE - 1);
		emit_alu_imm(e, BPF_ADD, POS, 1);
		emit_mov(e, R1, POS);
		emit_load(e, 8, R2, FRAME, SIZE);
		emit_alu(e, BPF_SUB, R1, R2);
		emit_later(e, &end, emit_jump_imm(e, BPF_JGE, R1, (int32_t)stack));
	}
	emit_land_all(e, &end);
}

void emit_user_dump_take(struct emitter *e, uint32_t stack)
{
	_cleanup_(emit_labels_done) struct emit_labels none = {};
	emit_label fits, empty, there, stored;

	emit_stack_pointer(e, &none);
	emit_store(e, 8, FRAME, SIZE, POS);
	emit_pages(e, stack);
	emit_load(e, 8, R1, FRAME, SIZE);
	emit_alu(e, BPF_SUB, POS, R1);
	fits = emit_jump_imm(e, BPF_JLE, POS, (int32_t)stack);
	emit_mov_imm(e, POS, (int32_t)stack);
	emit_land(e, fits);
	emit_alu_imm(e, BPF_AND, POS, ~7);
	empty = emit_jump_imm(e, BPF_JEQ, POS, 0);
	emit_alu_imm(e, BPF_ADD, POS, USER_DUMP_SIZE(0));
	there = emit_jump(e);
	emit_land_all(e, &none);
	emit_mov_imm(e, POS, USER_DUMP_NONE);
	stored = emit_jump(e);
	emit_land(e, empty);
	emit_mov_imm(e, POS, USER_DUMP_REGS);
	emit_land(e, there);
	emit_land(e, stored);
	emit_store(e, 8, FRAME, SIZE, POS);
}

void emit_user_dump_add_size(struct emitter *e)
{
	emit_store(e, 8, FRAME, FRONT, R1);
	emit_load(e, 8, R2, FRAME, SIZE);
	emit_alu(e, BPF_ADD, R1, R2);
}

/* R0 = the registers. */
static void emit_regs_write(struct emitter *e)
{
	static const struct {
		int place, bytes;
	} all[] = {
#define REG(name, bytes) { PLACE(name), bytes },
		USER_REGS(REG)
#undef REG
	};

	emit_mov_imm(e, R2, PERF_SAMPLE_REGS_ABI_64);
#ifdef USER_REGS_64
	emit_label is_64;

	emit_load(e, USER_REGS_MODE_BYTES, R1, R0, PLACE(USER_REGS_MODE));
	emit_alu_imm(e, BPF_AND, R1, USER_REGS_64_MASK);
	is_64 = emit_jump_imm(e, BPF_JEQ, R1, USER_REGS_64);
	emit_mov_imm(e, R2, PERF_SAMPLE_REGS_ABI_32);
	emit_land(e, is_64);
#endif
	emit_store(e, 8, DUMP, 0, R2);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		emit_load(e, all[i].bytes, R1, R0, all[i].place);
		emit_store(e, 8, DUMP, 8 + 8 * (int)i, R1);
	}
}

/* R3 = the stack pointer, R2 = the dump's size. bpf_probe_read_user() clears what it cannot read, if a page
 * has gone meanwhile. */
static void emit_stack_write(struct emitter *e)
{
	emit_label whole;

	emit_alu_imm(e, BPF_SUB, R2, USER_DUMP_SIZE(0));
	emit_store(e, 8, DUMP, USER_DUMP_REGS - 8, R2);
	emit_mov(e, R1, DUMP);
	emit_alu_imm(e, BPF_ADD, R1, USER_DUMP_REGS);
	emit_call(e, BPF_FUNC_probe_read_user);
	emit_load(e, 8, R1, FRAME, SIZE);
	emit_alu(e, BPF_ADD, DUMP, R1);
	emit_alu_imm(e, BPF_SUB, R1, USER_DUMP_SIZE(0));
	whole = emit_jump_imm(e, BPF_JEQ, R0, 0);
	emit_mov_imm(e, R1, 0);
	emit_land(e, whole);
	emit_store(e, 8, DUMP, -8, R1);
}

void emit_user_dump_write(struct emitter *e)
{
	emit_label there, empty, none, written;

	emit_load(e, 8, DUMP, FRAME, FRONT);
	emit_alu(e, BPF_ADD, DUMP, POS);
	emit_load(e, 8, R1, FRAME, SIZE);
	there = emit_jump_imm(e, BPF_JNE, R1, USER_DUMP_NONE);
	emit_store_imm(e, 8, DUMP, 0, PERF_SAMPLE_REGS_ABI_NONE);
	emit_store_imm(e, 8, DUMP, 8, 0);
	none = emit_jump(e);
	emit_land(e, there);
	emit_regs(e);
	emit_regs_write(e);
	emit_load(e, 8, R3, R0, PLACE(USER_REGS_SP));
	emit_load(e, 8, R2, FRAME, SIZE);
	empty = emit_jump_imm(e, BPF_JLT, R2, USER_DUMP_SIZE(0));
	emit_stack_write(e);
	written = emit_jump(e);
	emit_land(e, empty);
	emit_store_imm(e, 8, DUMP, USER_DUMP_REGS - 8, 0);
	emit_land(e, written);
	emit_land(e, none);
}
