/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small BPF emitter: appends instructions one by one to a growing program, and patches forward
 * jumps when their target is known. Errors (no memory, a jump that is too far) are sticky and
 * reported once, at the end. Knows the instruction set, nothing of the programs.
 */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* A forward jump that waits for its target. */
typedef size_t emit_label;

/* Several jumps that wait for the same target. */
struct emit_labels {
	emit_label *at;
	size_t n, cap;
};

struct emitter {
	struct bpf_insn *insns;
	size_t n, cap;
	int error; /* -ENOMEM, -E2BIG; -EINVAL: a second function. Sticky */
	int *fds;  /* maps that the instructions name and only the emitter holds */
	size_t n_fds;
	const struct bpf_insn *function; /* that is called, at */
	size_t n_function, call;
};

void emit_done(struct emitter *e);
void emit_labels_done(struct emit_labels *labels);

/* The emitter closes fd when it is done (or at once, if there is no memory). */
void emit_keep_fd(struct emitter *e, int fd);

void emit_mov(struct emitter *e, int dst, int src);
void emit_mov_imm(struct emitter *e, int dst, int32_t imm); /* sign-extended to 64 bits */
void emit_load_imm64(struct emitter *e, int dst, uint64_t imm);
void emit_load_map(struct emitter *e, int dst, int map_fd);
/* The address `off` bytes into the map's one element. */
void emit_load_map_value(struct emitter *e, int dst, int map_fd, uint32_t offset);
void emit_alu(struct emitter *e, int op, int dst, int src);		/* BPF_ADD, … 64 bits */
void emit_alu_imm(struct emitter *e, int op, int dst, int32_t imm);	/* 64 bits */
void emit_load(struct emitter *e, int size, int dst, int src, int off); /* size: 1 2 4 8 */
void emit_store(struct emitter *e, int size, int dst, int off, int src);
void emit_store_imm(struct emitter *e, int size, int dst, int off, int32_t imm);
/* Swaps src with the 8 bytes at dst + off, as a full barrier. */
void emit_exchange(struct emitter *e, int dst, int off, int src);
/* The 8 bytes at dst + off += src; src = the old value. A full barrier. */
void emit_fetch_add(struct emitter *e, int dst, int off, int src);
/* If the 8 bytes at dst + off equal R0, they become src; R0 = the old value. A full barrier. */
void emit_compare_exchange(struct emitter *e, int dst, int off, int src);
void emit_call(struct emitter *e, int helper);
/* Calls a function, one in a program; R0..R5 are lost. Its instructions, the caller's, come behind the program with
 * emit_function(), if it is called. */
void emit_call_function(struct emitter *e, const struct bpf_insn *function, size_t n);
void emit_function(struct emitter *e);
void emit_exit(struct emitter *e);

emit_label emit_jump(struct emitter *e);
/* A jump that is always taken, but not for the verifier: it would find the code behind
 * unreachable. */
emit_label emit_always(struct emitter *e, int scratch);
/* if (dst OP imm/src) goto a place given later by emit_land(). op: BPF_JEQ, BPF_JGT, … */
emit_label emit_jump_imm(struct emitter *e, int op, int dst, int32_t imm); /* sign-extended */
/* … with any constant; uses the register `scratch` if it must. */
emit_label emit_jump_imm64(struct emitter *e, int op, int dst, uint64_t imm, int scratch);
emit_label emit_jump_reg(struct emitter *e, int op, int dst, int src);
void emit_land(struct emitter *e, emit_label jump);

void emit_later(struct emitter *e, struct emit_labels *labels, emit_label jump);
void emit_land_all(struct emitter *e, struct emit_labels *labels); /* and empties them */

/* Backward: a place, and the jump there. */
emit_label emit_here(const struct emitter *e);
void emit_jump_back_imm(struct emitter *e, int op, int dst, int32_t imm, emit_label to);
