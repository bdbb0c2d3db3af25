/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends messages to the broker, emitted: the counterpart of bpf/send.bpf.h, which is in C. */
#pragma once

#include "daemon/engine/emit/emit.h"

/* Takes *busy if this CPU is sending. R0..R2 and RING_STACK_ZERO are lost. */
void emit_send_begin(struct emitter *e, int sending_fd, struct emit_labels *busy);

/*
 * Sends the message at R2, of `size` bytes, if there is room, and ends what emit_send_begin() has begun, with its
 * label. R0..R5 and RING_STACK_ZERO are lost.
 */
void emit_send(struct emitter *e, int sending_fd, int ringbuf_fd, int32_t size,
	       struct emit_labels *busy);
