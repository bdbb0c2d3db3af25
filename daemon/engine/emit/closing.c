// SPDX-License-Identifier: LGPL-2.1-or-later
/* Emits the window of a closing side. See closing.h. */
#include "daemon/engine/emit/closing.h"

#include <stddef.h>

#include "daemon/engine/emit/guard.h"
#include "daemon/engine/emit/send.h"
#include "daemon/trigger.h"

enum { R0, R1, R2 };

#define TAPE(member) ((int)offsetof(struct pp_tape, member))

void emit_closing_time(struct emitter *e, const struct recorder_target *target,
		       struct emit_labels *beyond)
{
	emit_label open;

	if (!target_closes(target))
		return;
	emit_load_map_value(e, R1, target->guard->tape_fd, 0);
	emit_load(e, 8, R2, R1, TAPE(until));
	open = emit_jump_imm(e, BPF_JEQ, R2, 0);
	emit_later(e, beyond, emit_jump_reg(e, BPF_JGT, R0, R2));
	emit_land(e, open);
}

/* Turns the tape, and tells the broker, unless another CPU was faster. */
static void emit_close(struct emitter *e, const struct recorder_guard *guard)
{
	const union pp_tape_state from = {
		.side = guard->side,
		.next = PP_SIDES_CLOSING + guard->other,
	};
	const union pp_tape_state to = { .side = guard->other, .next = PP_SIDES };
	struct emit_labels not_sent = { 0 };
	emit_label closed;

	emit_load_map_value(e, R1, guard->tape_fd, 0);
	emit_load_imm64(e, R0, from.word);
	emit_load_imm64(e, R2, to.word);
	emit_compare_exchange(e, R1, TAPE(state), R2);
	emit_load_imm64(e, R2, from.word);
	closed = emit_jump_reg(e, BPF_JNE, R0, R2);
	emit_load(e, 8, R2, R1, TAPE(id));
	emit_store(e, 8, R1, TAPE(by.closed), R2);
	emit_send_begin(e, guard->sending_fd, &not_sent);
	emit_load_map_value(e, R2, guard->tape_fd, (uint32_t)TAPE(by));
	emit_send(e, guard->sending_fd, guard->firings_fd, sizeof(struct pp_fired), &not_sent);
	emit_land_all(e, &not_sent);
	emit_labels_done(&not_sent);
	emit_land(e, closed);
}

void emit_closing_part(struct emitter *e, const struct recorder_target *target,
		       struct emit_labels *beyond)
{
	emit_label open, more;

	if (!target_closes(target))
		return;
	emit_load_map_value(e, R1, target->guard->tape_fd, 0);
	emit_load(e, 8, R2, R1, TAPE(until));
	open = emit_jump_imm(e, BPF_JEQ, R2, 0);
	emit_mov_imm(e, R2, -1);
	emit_fetch_add(e, R1, TAPE(left), R2);
	emit_later(e, beyond, emit_jump_imm(e, BPF_JSLE, R2, 0));
	more = emit_jump_imm(e, BPF_JNE, R2, 1);
	emit_close(e, target->guard);
	emit_land(e, more);
	emit_land(e, open);
}

void emit_closing_end(struct emitter *e, const struct recorder_target *target, int context,
		      int32_t ret_value, struct emit_labels *beyond)
{
	if (!target_closes(target))
		return;
	emit_land_all(e, beyond);
	emit_close(e, target->guard);
	emit_mov(e, R1, context);
	emit_next_side(e, target->guard, ret_value);
}
