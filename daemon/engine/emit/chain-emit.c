// SPDX-License-Identifier: LGPL-2.1-or-later
/* Call chains, emitted. See chain-emit.h. */
#include "daemon/engine/emit/chain-emit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "proto/macro.h"

enum { R0, R1, R2, R3, R4, POS = RING_POS, CONTEXT = RING_CONTEXT, FRAME = RING_FRAME };

/* In the scratch memory: how many chains preemptible programs have begun to take, and have taken; then the words. */
#define BEGUN 0
#define TAKEN 8
#define WORDS 16
#define SCRATCH_SIZE (WORDS + 2 * CHAIN_HALF_SIZE + 8)

int chain_scratch(const struct chain *chain)
{
	static int scratch[2] = { -EBADF, -EBADF };
	int *fd = &scratch[chain->is_preemptible];

	if (*fd < 0)
		*fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pp_chains", 4, SCRATCH_SIZE, 1,
				     NULL);
	return *fd;
}

/*
 * Appends a half, if there is one. The kernel puts no mark in front of the frames that it hands to a
 * program of a tracepoint or probe (4.18 to 6.18: __bpf_get_stack() asks get_perf_callchain() for none).
 */
static void emit_half(struct emitter *e, const struct chain *chain, uint64_t mark, uint32_t flags)
{
	const int32_t half = CHAIN_HALF_OF(chain->frames);
	emit_label second, room, none, fits;

	emit_load(e, 8, R3, FRAME, CHAIN_STACK_SIZE);
	emit_load(e, 8, R2, FRAME, CHAIN_STACK_RECORD);
	emit_alu(e, BPF_ADD, R2, R3);
	/* Both together have as many frames as one may have. */
	second = emit_jump_imm(e, BPF_JNE, R3, 0);
	emit_mov_imm(e, R3, 8);
	emit_land(e, second);
	emit_mov_imm(e, R0, half);
	emit_alu(e, BPF_SUB, R0, R3);
	/* Behind as many of the kernel's, perf has the mark of user space alone. A frame tells whether there
	 * is one, and is cut off. */
	room = emit_jump_imm(e, BPF_JNE, R0, 0);
	emit_mov_imm(e, R0, 8);
	emit_land(e, room);
	emit_load_imm64(e, R1, mark);
	emit_store(e, 8, R2, WORDS, R1);
	emit_alu_imm(e, BPF_ADD, R2, WORDS + 8);
	emit_mov(e, R1, CONTEXT);
	emit_mov(e, R3, R0);
	emit_mov_imm(e, R4, (int32_t)flags);
	emit_call(e, BPF_FUNC_get_stack);
	none = emit_jump_imm(e, BPF_JSLE, R0, 0);
	emit_load(e, 8, R1, FRAME, CHAIN_STACK_SIZE);
	emit_alu_imm(e, BPF_ADD, R0, 8);
	emit_alu(e, BPF_ADD, R1, R0);
	fits = emit_jump_imm(e, BPF_JLE, R1, half + 8);
	emit_mov_imm(e, R1, half + 8);
	emit_land(e, fits);
	emit_store(e, 8, FRAME, CHAIN_STACK_SIZE, R1);
	emit_land(e, none);
}

/* Scratch at R0: this one's turn. While another task, which was preempted, is taking one, this one has none: its words
 * may still be overwritten. */
static void emit_turn(struct emitter *e)
{
	emit_label alone;

	emit_mov_imm(e, R1, 1);
	emit_fetch_add(e, R0, BEGUN, R1);
	emit_load(e, 8, R2, R0, TAKEN);
	alone = emit_jump_reg(e, BPF_JEQ, R1, R2);
	emit_mov_imm(e, R1, -2);
	emit_land(e, alone);
	emit_store(e, 8, FRAME, CHAIN_STACK_TURN, R1);
}

void emit_chain_take(struct emitter *e, const struct chain *chain, int scratch_fd,
		     struct emit_labels *leave)
{
	emit_load_map(e, R1, scratch_fd);
	emit_element(e, leave);
	emit_store(e, 8, FRAME, CHAIN_STACK_RECORD, R0);
	emit_store_imm(e, 8, FRAME, CHAIN_STACK_SIZE, 0);
	if (chain->is_preemptible)
		emit_turn(e);
	if (chain->halves & CHAIN_KERNEL)
		emit_half(e, chain, PERF_CONTEXT_KERNEL, 0);
	if (chain->halves & CHAIN_USER)
		emit_half(e, chain, PERF_CONTEXT_USER, BPF_F_USER_STACK);
	if (chain->is_preemptible) {
		emit_load(e, 8, R2, FRAME, CHAIN_STACK_RECORD);
		emit_mov_imm(e, R1, 1);
		emit_fetch_add(e, R2, TAKEN, R1);
	}
}

void emit_chain_add_size(struct emitter *e)
{
	emit_load(e, 8, R2, FRAME, CHAIN_STACK_SIZE);
	emit_alu(e, BPF_ADD, R1, R2);
	emit_alu_imm(e, BPF_ADD, R1, 8);
}

/* To = POS + offset, from R3. */
static void emit_words(struct emitter *e, int offset)
{
	emit_mov(e, R1, POS);
	emit_alu_imm(e, BPF_ADD, R1, offset);
	emit_load(e, 8, R2, FRAME, CHAIN_STACK_SIZE);
	emit_call(e, BPF_FUNC_probe_read_kernel);
}

/* If another task has begun one meanwhile it is none: bpf_probe_read_kernel() clears what it cannot read. */
static void emit_clear(struct emitter *e, int offset)
{
	emit_label alone;

	emit_load(e, 8, R1, FRAME, CHAIN_STACK_RECORD);
	emit_load(e, 8, R1, R1, BEGUN);
	emit_load(e, 8, R2, FRAME, CHAIN_STACK_TURN);
	emit_alu_imm(e, BPF_ADD, R2, 1);
	alone = emit_jump_reg(e, BPF_JEQ, R1, R2);
	emit_mov_imm(e, R3, 0);
	emit_words(e, offset);
	emit_land(e, alone);
}

void emit_chain_copy(struct emitter *e, const struct chain *chain, int offset)
{
	emit_load(e, 8, R1, FRAME, CHAIN_STACK_SIZE);
	emit_alu_imm(e, BPF_RSH, R1, 3);
	emit_store(e, 8, POS, offset, R1);
	emit_load(e, 8, R3, FRAME, CHAIN_STACK_RECORD);
	emit_alu_imm(e, BPF_ADD, R3, WORDS);
	emit_words(e, offset + 8);
	if (chain->is_preemptible)
		emit_clear(e, offset + 8);
	emit_store(e, 8, FRAME, CHAIN_STACK_RECORD, POS);
}

void emit_chain_pass(struct emitter *e)
{
	emit_load(e, 8, R1, FRAME, CHAIN_STACK_SIZE);
	emit_alu(e, BPF_ADD, POS, R1);
	emit_alu_imm(e, BPF_ADD, POS, 8);
}

void emit_chain_return(struct emitter *e)
{
	emit_load(e, 8, POS, FRAME, CHAIN_STACK_RECORD);
}
