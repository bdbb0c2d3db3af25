// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/engine/emit/send.h"

#include "daemon/engine/emit/ring-emit.h"

enum { R0, R1, R2, R3, R4 };

/* R0 = this CPU's word. */
static void emit_word(struct emitter *e, int sending_fd, struct emit_labels *missing)
{
	emit_load_map(e, R1, sending_fd);
	emit_element(e, missing);
}

void emit_send_begin(struct emitter *e, int sending_fd, struct emit_labels *busy)
{
	emit_word(e, sending_fd, busy);
	emit_mov(e, R1, R0);
	emit_mov_imm(e, R0, 0);
	emit_mov_imm(e, R2, 1);
	emit_compare_exchange(e, R1, 0, R2);
	emit_later(e, busy, emit_jump_imm(e, BPF_JNE, R0, 0));
}

void emit_send(struct emitter *e, int sending_fd, int ringbuf_fd, int32_t size,
	       struct emit_labels *busy)
{
	emit_load_map(e, R1, ringbuf_fd);
	emit_mov_imm(e, R3, size);
	emit_mov_imm(e, R4, 0);
	emit_call(e, BPF_FUNC_ringbuf_output);
	emit_word(e, sending_fd, busy);
	emit_store_imm(e, 8, R0, 0, 0);
}
