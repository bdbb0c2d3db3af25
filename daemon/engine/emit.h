/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small BPF emitter: instructions appended one by one to a growing program, forward jumps
 * patched when their target is known. Errors (no memory) are sticky and seen once, at the
 * end. Knows the instruction set, nothing of what is emitted.
 */
#ifndef PP_EMIT_H
#define PP_EMIT_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

struct emitter {
	struct bpf_insn *insns;
	size_t n, cap;
	int error; /* -ENOMEM, sticky */
};

/* A forward jump that waits for its target. */
typedef size_t emit_label;

void emit_done(struct emitter *e);

void emit_mov(struct emitter *e, int dst, int src);
void emit_mov_imm(struct emitter *e, int dst, int32_t imm); /* sign-extended to 64 bits */
void emit_load_imm64(struct emitter *e, int dst, uint64_t imm);
void emit_load_map(struct emitter *e, int dst, int map_fd);
void emit_load_map_value(struct emitter *e, int dst, int map_fd);   /* address of its one element */
void emit_alu(struct emitter *e, int op, int dst, int src);	    /* BPF_ADD, … 64 bits */
void emit_alu_imm(struct emitter *e, int op, int dst, int32_t imm); /* 64 bits */
void emit_load(struct emitter *e, int size, int dst, int src, int off); /* size: 1 2 4 8 */
void emit_store(struct emitter *e, int size, int dst, int off, int src);
void emit_store_imm(struct emitter *e, int size, int dst, int off, int32_t imm);
/* Swaps src with the 8 bytes at dst + off, as a full barrier. */
void emit_exchange(struct emitter *e, int dst, int off, int src);
void emit_call(struct emitter *e, int helper);
void emit_exit(struct emitter *e);

emit_label emit_jump(struct emitter *e);
/* if (dst OP imm/src) goto a place given later by emit_land(). op: BPF_JEQ, BPF_JGT, … */
emit_label emit_jump_imm(struct emitter *e, int op, int dst, int32_t imm);
emit_label emit_jump_reg(struct emitter *e, int op, int dst, int src);
void emit_land(struct emitter *e, emit_label jump);

#endif
