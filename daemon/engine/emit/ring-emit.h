/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes into this CPU's ring, as proto/ring.h demands it, in emitted instructions: the counterpart
 * of bpf/ring.bpf.h, which is in C. Owns the roles of the registers from the look-up to the end.
 * Knows nothing of a record's contents, except where its time is.
 *
 * In this order: find, then (rate-limit.h) limit, reserve, the record's bytes, commit,
 * (rate-limit.h) wake.
 */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/recorders/recorder.h"

enum ring_register {
	RING_CONTEXT = BPF_REG_6, /* the program's */
	RING_RING = BPF_REG_7,	  /* the ring: header, then data */
	RING_POS = BPF_REG_8,	  /* the record's address, once it is reserved */
	RING_FRAME = BPF_REG_10,
};

/* Offsets of stack slots from FRAME. */
enum ring_stack {
	RING_STACK_CPU = -4,
	RING_STACK_ZERO = -8,
	RING_STACK_HEAD = -16,	       /* where the record begins */
	RING_STACK_SIZE = -24,	       /* the record's size, if that is not a constant */
	RING_STACK_TIME = -32,	       /* nesting writers: the record's time */
	RING_STACK_END_POSITION = -32, /* one writer: where the record ends */
	RING_STACK_WAKEUP = -48,
	RING_STACK_CLOSING = -56, /* one writer, of a closing side: the record's time */
	RING_STACK_END = -56,
};

/* R0 = the element of the map at R1, which has one (of each CPU's), or *none. R1..R5 and RING_STACK_ZERO
 * are lost. */
void emit_element(struct emitter *e, struct emit_labels *none);

/* RING = the ring of the current CPU; R0..R5 are lost. Takes *no_ring if there is none, and counts
 * that if the target says where. */
void emit_ring_find(struct emitter *e, const struct recorder_target *target,
		    struct emit_labels *no_ring);

/*
 * POS = room for a record of that many bytes; 0: as many as RING_STACK_SIZE and R1 say. R0..R5 are
 * lost. Takes *no_room, with nothing left to clean up, if nesting writers have left no room, or if
 * there is another writer where none can be. Likewise *beyond, of a closing side, if the record is for
 * the next side (emit/closing.h).
 */
void emit_ring_reserve(struct emitter *e, const struct recorder_target *target, uint32_t size,
		       struct emit_labels *no_room, struct emit_labels *beyond);

/* R0 = the time of a reserved record. R1..R5 are lost. */
void emit_ring_time(struct emitter *e, const struct recorder_target *target);

/* Publishes the complete record. R1..R3 are lost. */
void emit_ring_commit(struct emitter *e, const struct recorder_target *target);

/* missed += 1: an event without a record. R1 is lost. */
void emit_ring_missed(struct emitter *e, const struct recorder_target *target);

/* The word at RING + offset += 1, in the way that this ring requires. R1 is lost. */
void emit_ring_count(struct emitter *e, const struct recorder_target *target, int offset);
