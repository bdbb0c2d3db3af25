/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends messages to the broker, emitted: the counterpart of bpf/send.bpf.h, which is in C. */
#pragma once

#include "daemon/engine/emit/emit.h"

/* Takes *not_sent if this CPU is sending. R0..R2 and RING_STACK_ZERO are lost. */
void emit_send_begin(struct emitter *e, int sending_fd, struct emit_labels *not_sent);

/*
 * Sends the message at R2, of `size` bytes, and ends what emit_send_begin() has begun. result: eight bytes of the
 * stack (< 0) in which its result is kept, so that it takes *not_sent if there was no room; 0: that does not
 * matter. R0..R5 and RING_STACK_ZERO are lost.
 */
void emit_send(struct emitter *e, int sending_fd, int ringbuf_fd, int32_t size, int result,
	       struct emit_labels *not_sent);
