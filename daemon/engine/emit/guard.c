// SPDX-License-Identifier: LGPL-2.1-or-later
/* Emits the guard. See guard.h. */
#include "daemon/engine/emit/guard.h"

#include <stddef.h>

#include "daemon/trigger.h"

enum { R0, R1, R2, R3 };

/* R3 = the side that the tape is on. */
static void emit_side(struct emitter *e, const struct recorder_guard *guard)
{
	emit_load_map_value(e, R2, guard->tape_fd, 0);
	emit_load(e, 4, R3, R2, offsetof(struct pp_tape, state.side));
}

/* Goes on to the program of side R3. */
static void emit_other(struct emitter *e, const struct recorder_guard *guard, int32_t ret_value)
{
	emit_label none = emit_jump_imm(e, BPF_JGE, R3, PP_SIDES);

	emit_alu_imm(e, BPF_ADD, R3, (int32_t)guard->base);
	emit_load_map(e, R2, guard->sides_fd);
	emit_call(e, BPF_FUNC_tail_call);
	emit_land(e, none);
	/* There is no such program, or there were 33 tail calls. */
	emit_load_map_value(e, R2, guard->tape_fd, 0);
	emit_mov_imm(e, R1, 1);
	emit_fetch_add(e, R2, offsetof(struct pp_tape, lost), R1);
	emit_mov_imm(e, R0, ret_value);
	emit_exit(e);
}

void emit_guard(struct emitter *e, const struct recorder_guard *guard, int32_t ret_value)
{
	emit_label ours;

	if (!guard)
		return;
	emit_side(e, guard);
	ours = emit_jump_imm(e, BPF_JEQ, R3, (int32_t)guard->side);
	emit_other(e, guard, ret_value);
	emit_land(e, ours);
}

void emit_next_side(struct emitter *e, const struct recorder_guard *guard, int32_t ret_value)
{
	emit_side(e, guard);
	emit_other(e, guard, ret_value);
}

void emit_fire(struct emitter *e, const struct recorder_target *target)
{
	if (target->fire)
		emit_call_function(e, target->fire->insns, target->fire->n);
}

void emit_tell(struct emitter *e, const struct recorder_target *target, int context)
{
	if (!target->tell_fd)
		return;
	emit_mov(e, R1, context);
	emit_load_map(e, R2, *target->tell_fd);
	emit_mov_imm(e, R3, 0);
	emit_call(e, BPF_FUNC_tail_call);
}
