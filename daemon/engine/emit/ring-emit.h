/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing into this CPU's ring, as proto/ring.h demands it, in emitted instructions: what
 * bpf/ring.bpf.h is in C. Owns the roles of the registers from the look-up to the end. Knows
 * nothing of what a record holds, but for where its time is.
 *
 * In this order: find, then (rate-limit.h) limit, reserve, the record's bytes, commit, (rate-limit.h) wake.
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

/* What is kept on the stack, at offsets from FRAME. */
enum ring_stack {
	RING_STACK_CPU = -4,
	RING_STACK_ZERO = -8,
	RING_STACK_HEAD = -16,	       /* where the record begins */
	RING_STACK_SIZE = -24,	       /* the record's size, if that is not a constant */
	RING_STACK_TIME = -32,	       /* nesting writers: the record's time */
	RING_STACK_END_POSITION = -32, /* one writer: where the record ends */
	RING_STACK_WAKEUP = -48,
	RING_STACK_END = -48,
};

/* RING = the ring of the CPU that runs this; R0..R5 are lost. Leaves by *no_ring if there is none,
 * which is counted if the target says where. */
void emit_ring_find(struct emitter *e, const struct recorder_target *target,
		    struct emit_labels *no_ring);

/*
 * POS = room for a record of that many bytes; 0: as many as RING_STACK_SIZE and R1 say. R0..R5 are
 * lost. Leaves by *no_room, with all done that has to be, if nesting writers have left none, or if
 * there is another writer where none can be.
 */
void emit_ring_reserve(struct emitter *e, const struct recorder_target *target, uint32_t size,
		       struct emit_labels *no_room);

/* R0 = the record's time, for a record that is reserved. R1..R5 are lost. */
void emit_ring_time(struct emitter *e, const struct recorder_target *target);

/* The record is whole. R1..R3 are lost. */
void emit_ring_commit(struct emitter *e, const struct recorder_target *target);

/* missed += 1: an event without a record. R1 is lost. */
void emit_ring_missed(struct emitter *e, const struct recorder_target *target);

/* The word at RING + offset += 1, as it has to be done in this ring. R1 is lost. */
void emit_ring_count(struct emitter *e, const struct recorder_target *target, int offset);
