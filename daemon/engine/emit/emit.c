// SPDX-License-Identifier: LGPL-2.1-or-later
/* The BPF emitter of emit.h. */
#include "daemon/engine/emit/emit.h"

#include "proto/macro.h"

static void put(struct emitter *e, struct bpf_insn insn)
{
	if (e->error)
		return;
	if (e->n == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 128;
		struct bpf_insn *grown = reallocarray(e->insns, cap, sizeof(*grown));

		if (!grown) {
			e->error = -ENOMEM;
			return;
		}
		e->insns = grown;
		e->cap = cap;
	}
	e->insns[e->n++] = insn;
}

static int size_code(int size)
{
	switch (size) {
	case 1:
		return BPF_B;
	case 2:
		return BPF_H;
	case 4:
		return BPF_W;
	default:
		return BPF_DW;
	}
}

void emit_done(struct emitter *e)
{
	for (size_t i = 0; i < e->n_fds; i++)
		close_fd(e->fds[i]);
	free(e->fds);
	free(e->insns);
	*e = (struct emitter){};
}

void emit_labels_done(struct emit_labels *labels)
{
	free(labels->at);
	*labels = (struct emit_labels){};
}

void emit_keep_fd(struct emitter *e, int fd)
{
	int *grown = reallocarray(e->fds, e->n_fds + 1, sizeof(*grown));

	if (!grown) {
		close_fd(fd);
		e->error = -ENOMEM;
		return;
	}
	e->fds = grown;
	e->fds[e->n_fds++] = fd;
}

void emit_mov(struct emitter *e, int dst, int src)
{
	emit_alu(e, BPF_MOV, dst, src);
}

void emit_mov_imm(struct emitter *e, int dst, int32_t imm)
{
	emit_alu_imm(e, BPF_MOV, dst, imm);
}

static void put_wide(struct emitter *e, int dst, int src, uint64_t imm)
{
	put(e, (struct bpf_insn){ .code = BPF_LD | BPF_DW | BPF_IMM,
				  .dst_reg = dst,
				  .src_reg = src,
				  .imm = (int32_t)imm });
	put(e, (struct bpf_insn){ .imm = (int32_t)(imm >> 32) });
}

void emit_load_imm64(struct emitter *e, int dst, uint64_t imm)
{
	put_wide(e, dst, 0, imm);
}

void emit_load_map(struct emitter *e, int dst, int map_fd)
{
	put_wide(e, dst, BPF_PSEUDO_MAP_FD, (uint32_t)map_fd);
}

void emit_load_map_value(struct emitter *e, int dst, int map_fd, uint32_t offset)
{
	put_wide(e, dst, BPF_PSEUDO_MAP_VALUE, (uint32_t)map_fd | (uint64_t)offset << 32);
}

void emit_alu(struct emitter *e, int op, int dst, int src)
{
	put(e, (struct bpf_insn){ .code = BPF_ALU64 | op | BPF_X, .dst_reg = dst, .src_reg = src });
}

void emit_alu_imm(struct emitter *e, int op, int dst, int32_t imm)
{
	put(e, (struct bpf_insn){ .code = BPF_ALU64 | op | BPF_K, .dst_reg = dst, .imm = imm });
}

void emit_load(struct emitter *e, int size, int dst, int src, int off)
{
	put(e, (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | size_code(size),
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = off });
}

void emit_store(struct emitter *e, int size, int dst, int off, int src)
{
	put(e, (struct bpf_insn){ .code = BPF_STX | BPF_MEM | size_code(size),
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = off });
}

void emit_store_imm(struct emitter *e, int size, int dst, int off, int32_t imm)
{
	put(e, (struct bpf_insn){ .code = BPF_ST | BPF_MEM | size_code(size),
				  .dst_reg = dst,
				  .off = off,
				  .imm = imm });
}

static void put_atomic(struct emitter *e, int op, int dst, int off, int src)
{
	put(e, (struct bpf_insn){ .code = BPF_STX | BPF_ATOMIC | BPF_DW,
				  .dst_reg = dst,
				  .src_reg = src,
				  .off = off,
				  .imm = op });
}

void emit_exchange(struct emitter *e, int dst, int off, int src)
{
	put_atomic(e, BPF_XCHG, dst, off, src);
}

void emit_fetch_add(struct emitter *e, int dst, int off, int src)
{
	put_atomic(e, BPF_ADD | BPF_FETCH, dst, off, src);
}

void emit_compare_exchange(struct emitter *e, int dst, int off, int src)
{
	put_atomic(e, BPF_CMPXCHG, dst, off, src);
}

void emit_call(struct emitter *e, int helper)
{
	put(e, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = helper });
}

void emit_call_function(struct emitter *e, const struct bpf_insn *function, size_t n)
{
	if (e->function)
		e->error = e->error ?: -EINVAL;
	e->call = e->n;
	e->function = function;
	e->n_function = n;
	put(e, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL });
}

void emit_function(struct emitter *e)
{
	if (e->function && !e->error)
		e->insns[e->call].imm = (int32_t)(e->n - e->call - 1);
	for (size_t i = 0; i < e->n_function; i++)
		put(e, e->function[i]);
}

void emit_exit(struct emitter *e)
{
	put(e, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

emit_label emit_jump(struct emitter *e)
{
	put(e, (struct bpf_insn){ .code = BPF_JMP | BPF_JA });
	return e->n - 1;
}

emit_label emit_always(struct emitter *e, int scratch)
{
	emit_mov_imm(e, scratch, 0);
	return emit_jump_imm(e, BPF_JEQ, scratch, 0);
}

emit_label emit_jump_imm(struct emitter *e, int op, int dst, int32_t imm)
{
	put(e, (struct bpf_insn){ .code = BPF_JMP | op | BPF_K, .dst_reg = dst, .imm = imm });
	return e->n - 1;
}

emit_label emit_jump_imm64(struct emitter *e, int op, int dst, uint64_t imm, int scratch)
{
	if ((int64_t)imm >= INT32_MIN && (int64_t)imm <= INT32_MAX)
		return emit_jump_imm(e, op, dst, (int32_t)imm);
	emit_load_imm64(e, scratch, imm);
	return emit_jump_reg(e, op, dst, scratch);
}

emit_label emit_jump_reg(struct emitter *e, int op, int dst, int src)
{
	put(e, (struct bpf_insn){ .code = BPF_JMP | op | BPF_X, .dst_reg = dst, .src_reg = src });
	return e->n - 1;
}

/* Offsets are 16 bits wide. */
static int16_t distance(struct emitter *e, size_t jump, size_t target)
{
	ptrdiff_t off = (ptrdiff_t)target - (ptrdiff_t)jump - 1;

	if ((off < INT16_MIN || off > INT16_MAX) && !e->error)
		e->error = -E2BIG;
	return off;
}

void emit_land(struct emitter *e, emit_label jump)
{
	if (!e->error)
		e->insns[jump].off = distance(e, jump, e->n);
}

void emit_later(struct emitter *e, struct emit_labels *labels, emit_label jump)
{
	if (labels->n == labels->cap) {
		size_t cap = labels->cap ? labels->cap * 2 : 16;
		emit_label *grown = reallocarray(labels->at, cap, sizeof(*grown));

		if (!grown) {
			e->error = -ENOMEM;
			return;
		}
		labels->at = grown;
		labels->cap = cap;
	}
	labels->at[labels->n++] = jump;
}

void emit_land_all(struct emitter *e, struct emit_labels *labels)
{
	for (size_t i = 0; i < labels->n; i++)
		emit_land(e, labels->at[i]);
	labels->n = 0;
}

emit_label emit_here(const struct emitter *e)
{
	return e->n;
}

void emit_jump_back_imm(struct emitter *e, int op, int dst, int32_t imm, emit_label to)
{
	emit_label jump = emit_jump_imm(e, op, dst, imm);

	if (!e->error)
		e->insns[jump].off = distance(e, jump, to);
}
