// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rate limits and wakeups, emitted. See rate-limit.h. */
#include "daemon/engine/emit/rate-limit.h"

#include "daemon/engine/bpf/wakeup.h"
#include "daemon/engine/emit/send.h"
#include "daemon/engine/kernel/kernel.h"
#include "proto/macro.h"
#include "proto/ring.h"

enum { R0, R1, R2, R3, R4, R5, RING = RING_RING, POS = RING_POS, FRAME = RING_FRAME };

#define GATE(word) (PP_RING_LIMIT_OFFSET + (int)offsetof(struct pp_ring_limit, word))
#define SECOND 1000000000

/*
 * Jiffies are precise enough, and cost one load; the kernel's coarse clock is not available to
 * tracing programs (5e0bc3082e2e). Signed: a nested writer may have been here meanwhile.
 */
static void emit_window(struct emitter *e)
{
	emit_label same;

	emit_call(e, BPF_FUNC_jiffies64);
	emit_alu_imm(e, BPF_MUL, R0, (int32_t)kernel_tick());
	emit_load(e, 8, R1, RING, GATE(window));
	emit_mov(e, R2, R0);
	emit_alu(e, BPF_SUB, R2, R1);
	same = emit_jump_imm(e, BPF_JSLT, R2, SECOND);
	emit_store(e, 8, RING, GATE(window), R0);
	emit_store_imm(e, 8, RING, GATE(in_window), 0);
	emit_land(e, same);
}

void emit_rate_limit(struct emitter *e, const struct recorder_target *target,
		     struct emit_labels *limited)
{
	emit_label admitted;

	if (!target->max_rate)
		return;
	emit_window(e);
	if (target->nests) {
		emit_mov_imm(e, R1, 1);
		emit_fetch_add(e, RING, GATE(in_window), R1);
	} else {
		emit_load(e, 8, R1, RING, GATE(in_window));
	}
	admitted = emit_jump_imm64(e, BPF_JLT, R1, target->max_rate, R2);
	emit_ring_count(e, target, GATE(limited));
	emit_later(e, limited, emit_jump(e));
	emit_land(e, admitted);
	if (!target->nests) {
		emit_alu_imm(e, BPF_ADD, R1, 1);
		emit_store(e, 8, RING, GATE(in_window), R1);
	}
}

void emit_wakeup(struct emitter *e, const struct recorder_target *target, int time)
{
	struct emit_labels busy = { 0 };
	emit_label lately, sent;

	if (target->wakeup_fd < 0)
		return;
	/* Other writers may have overwritten the committed record by now. */
	if (target->nests)
		emit_load(e, 8, R1, FRAME, RING_STACK_TIME);
	else
		emit_load(e, 8, R1, POS, time);
	emit_load(e, 8, R2, RING, GATE(woken));
	emit_mov(e, R3, R1);
	emit_alu(e, BPF_SUB, R3, R2);
	lately = emit_jump_imm(e, BPF_JSLT, R3, (int32_t)PP_WAKEUP_INTERVAL);
	emit_store(e, 8, RING, GATE(woken), R1);
	emit_load_imm64(e, R1, target->event_id);
	emit_store(e, 8, FRAME, RING_STACK_WAKEUP + (int)offsetof(struct pp_wakeup, event_id), R1);
	emit_load(e, 4, R1, RING, (int)offsetof(struct pp_ring_header, cpu));
	emit_store(e, 4, FRAME, RING_STACK_WAKEUP + (int)offsetof(struct pp_wakeup, cpu), R1);
	emit_store_imm(e, 4, FRAME, RING_STACK_WAKEUP + (int)offsetof(struct pp_wakeup, reserved),
		       0);
	emit_send_begin(e, target->sending_fd, &busy);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, RING_STACK_WAKEUP);
	emit_send(e, target->sending_fd, target->wakeup_fd, sizeof(struct pp_wakeup), &busy);
	sent = emit_jump(e);
	emit_land_all(e, &busy);
	emit_labels_done(&busy);
	emit_store_imm(e, 8, RING, GATE(woken), 0); /* the next record tells */
	emit_land(e, sent);
	emit_land(e, lately);
}
