// SPDX-License-Identifier: LGPL-2.1-or-later
/* Emits and loads entries. See entry.h. */
#include "daemon/engine/recorders/entry.h"

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/emit/program.h"
#include "proto/macro.h"

enum { R0, R1, R2, R3, R4, CONTEXT = BPF_REG_6, NUMBER };

#define NUMBER_OFFSET 8 /* in the context, after the common fields */

/* R1 = the context, R3 = the slot's index. */
static void emit_jump_to_slot(struct emitter *e, int slots)
{
	emit_load_map(e, R2, slots);
	emit_call(e, BPF_FUNC_tail_call);
}

static int load(struct emitter *e, const struct recorder_class *class, int *ret_fd)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = class->expected,
		    .attach_btf_id = class->attach_btf_id);
	int fd;

	emit_mov_imm(e, R0, class->result);
	emit_exit(e);
	if (e->error)
		return e->error;
	fd = program_load(class->type, "pp_entry", e->insns, e->n, &opts);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int entry_load(const struct recorder_class *class, const struct recorder_slot *slot, int *ret_fd)
{
	_cleanup_(emit_done) struct emitter e = {};

	/* R1 is the context already. */
	emit_mov_imm(&e, R3, (int32_t)slot->index);
	emit_jump_to_slot(&e, slot->fd);
	return load(&e, class, ret_fd);
}

/* The call counts although it is made only if the slot is empty. */
int entry_load_chain(const struct recorder_class *class, const struct recorder_slot *slot,
		     int *ret_fd)
{
	_cleanup_(emit_done) struct emitter e = {};

	emit_mov(&e, CONTEXT, R1);
	emit_mov_imm(&e, R3, (int32_t)slot->index);
	emit_jump_to_slot(&e, slot->fd);
	emit_mov(&e, R1, CONTEXT);
	emit_mov(&e, R2, BPF_REG_10);
	emit_alu_imm(&e, BPF_ADD, R2, -8);
	emit_mov_imm(&e, R3, 8);
	emit_mov_imm(&e, R4, 0);
	emit_call(&e, BPF_FUNC_get_stack);
	return load(&e, class, ret_fd);
}

/* Leaves out tasks in 32-bit calls, as syscalls:* do. */
int entry_load_syscall(const struct recorder_slot *slot, const struct syscall_facts *call,
		       bool is_one, int *ret_fd)
{
	_cleanup_(emit_labels_done) struct emit_labels leave = {};
	_cleanup_(emit_done) struct emitter e = {};
	const struct recorder_class class = { .type = BPF_PROG_TYPE_TRACEPOINT, .result = 1 };

	emit_load(&e, 4, NUMBER, R1, NUMBER_OFFSET);
	if (is_one)
		emit_later(&e, &leave, emit_jump_imm(&e, BPF_JNE, NUMBER, (int32_t)call->number));
	emit_mov(&e, CONTEXT, R1);
	emit_call(&e, BPF_FUNC_get_current_task_btf);
	emit_load(&e, 4, R0, R0, (int)call->compat_offset);
	emit_alu_imm(&e, BPF_AND, R0, (int32_t)call->compat_mask);
	emit_later(&e, &leave, emit_jump_imm(&e, BPF_JNE, R0, 0));
	emit_mov(&e, R1, CONTEXT);
	if (is_one)
		emit_mov_imm(&e, R3, (int32_t)slot->index);
	else
		emit_mov(&e, R3, NUMBER);
	emit_jump_to_slot(&e, slot->fd);
	emit_land_all(&e, &leave);
	return load(&e, &class, ret_fd);
}
