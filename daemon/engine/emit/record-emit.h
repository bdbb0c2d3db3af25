/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record that all emitted programs write: the header, the source's id if it has one, TID, TIME, [CALLCHAIN,]
 * RAW, and in RAW the payload, which begins with the common fields [, REGS_USER, STACK_USER]. Knows its
 * size, and emits everything but the payload's own fields.
 *
 * With a call chain, which perf puts in front of RAW, its size is in RING_STACK_SIZE, too, and POS moves
 * on by that of the chain from emit_record() to emit_record_end().
 */
#pragma once

#include "daemon/engine/emit/chain-emit.h"
#include "daemon/engine/emit/user-dump.h"

#define RECORD_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)
#define RECORD_COMMON_SIZE 8 /* of the common fields */

struct record {
	uint64_t id;	     /* of the source; 0: the record has none */
	uint32_t type;	     /* the payload's common_type */
	uint32_t fixed_size; /* of the payload */
	bool has_dynamic;    /* more follows; the record's size is in RING_STACK_SIZE */
	uint32_t misc;	     /* PERF_RECORD_MISC_* */
	struct chain chain;
	uint32_t
		user_stack; /* bytes of it, at most, behind the user's registers; 0: it has neither */
};

/* Its sample type, and the size that its ring must have room for: `payload` bytes, and the others. */
uint64_t record_sample_type(const struct record *record);
uint32_t record_spill_size(const struct record *record, uint32_t payload);
/* Offsets in it. */
int record_time(const struct record *record);
int record_payload(const struct record *record);

/* Takes the chain, and POS = room for the record, as emit_ring_reserve() does. tail: the register that has
 * the bytes of payload behind the fixed ones, if it has_dynamic. R0..R5 are lost. */
void emit_record_reserve(struct emitter *e, const struct record *record,
			 const struct recorder_target *target, int tail,
			 struct emit_labels *no_room, struct emit_labels *beyond);

/* Writes everything at POS except the payload behind the common fields. R0..R5 are lost. */
void emit_record(struct emitter *e, const struct record *record,
		 const struct recorder_target *target);

/* The payload is written: writes what is behind it. POS = the record again; R0..R5 and R9 are lost. */
void emit_record_end(struct emitter *e, const struct record *record);
