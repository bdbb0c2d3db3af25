// SPDX-License-Identifier: LGPL-2.1-or-later
/* The record of emitted programs. See record-emit.h. */
#include "daemon/engine/emit/record-emit.h"

#include <errno.h>

#include "proto/macro.h"

enum { R0, R1, R2, POS = RING_POS, FRAME = RING_FRAME };

/* Offsets in a record without the source's id, which shifts all of them. */
#define TID 8
#define TIME 16
#define RAW_SIZE 24
#define PAYLOAD 28

static int moved(const struct record *record, int offset)
{
	return offset + (record->id ? (int)sizeof(record->id) : 0);
}

/* As perf lays RAW out: with its 4-byte size in front it ends on an 8-byte boundary. */
static uint32_t raw_size(uint32_t payload)
{
	return ALIGN_TO(payload + 4, 8U) - 4;
}

/* Without those of the chain and of user space. */
static uint32_t size_of(const struct record *record, uint32_t payload)
{
	return (uint32_t)record_payload(record) + raw_size(payload);
}

/* Whether its size is no constant. */
static bool varies(const struct record *record)
{
	return record->has_dynamic || record->chain.is_there || record->user_stack;
}

/* The stack slot with the size of the record, or of what stands in front of the user's registers. */
static int front_slot(const struct record *record)
{
	return record->user_stack ? (int)USER_DUMP_STACK_FRONT : (int)RING_STACK_SIZE;
}

uint64_t record_sample_type(const struct record *record)
{
	return RECORD_SAMPLE_TYPE | (record->chain.is_there ? PERF_SAMPLE_CALLCHAIN : 0) |
	       (record->user_stack ? USER_DUMP_SAMPLE_TYPE : 0);
}

/* 8 more: the verifier assumes the largest size before rounding. */
uint32_t record_spill_size(const struct record *record, uint32_t payload)
{
	return size_of(record, payload) + (record->has_dynamic ? 8 : 0) +
	       (record->chain.is_there ? CHAIN_SIZE_MAX : 0) + user_dump_size(record->user_stack);
}

int record_time(const struct record *record)
{
	return moved(record, TIME);
}

int record_payload(const struct record *record)
{
	return moved(record, PAYLOAD);
}

/* RING_STACK_SIZE and R1 = its size, which varies. R2 is lost. */
static void emit_size(struct emitter *e, const struct record *record, int tail)
{
	if (record->has_dynamic) {
		emit_mov(e, R1, tail);
		emit_alu_imm(e, BPF_ADD, R1, (int32_t)record->fixed_size + 4 + 7);
		emit_alu_imm(e, BPF_AND, R1, ~7);
		emit_alu_imm(e, BPF_ADD, R1, moved(record, RAW_SIZE));
	} else {
		emit_mov_imm(e, R1, (int32_t)size_of(record, record->fixed_size));
	}
	if (record->chain.is_there)
		emit_chain_add_size(e);
	if (record->user_stack)
		emit_user_dump_add_size(e);
	emit_store(e, 8, FRAME, RING_STACK_SIZE, R1);
}

void emit_record_reserve(struct emitter *e, const struct record *record,
			 const struct recorder_target *target, int tail,
			 struct emit_labels *no_room, struct emit_labels *beyond)
{
	int scratch = record->chain.is_there ? chain_scratch(&record->chain) : -EBADF;

	if (!varies(record)) {
		emit_ring_reserve(e, target, size_of(record, record->fixed_size), no_room, beyond);
		return;
	}
	if (scratch >= 0)
		emit_chain_take(e, &record->chain, scratch, no_room);
	else if (record->chain.is_there)
		e->error = scratch;
	if (record->user_stack)
		emit_user_dump_take(e, record->user_stack);
	emit_size(e, record, tail);
	emit_ring_reserve(e, target, 0, no_room, beyond);
}

/* Zeroes the padding behind the payload by zeroing its last 8 bytes first. */
static void emit_zero_tail(struct emitter *e, const struct record *record)
{
	if (!varies(record)) {
		emit_store_imm(e, 8, POS, (int)size_of(record, record->fixed_size) - 8, 0);
		return;
	}
	emit_load(e, 8, R1, FRAME, front_slot(record));
	emit_alu(e, BPF_ADD, R1, POS);
	emit_store_imm(e, 8, R1, -8, 0);
}

static void emit_header(struct emitter *e, const struct record *record)
{
	uint64_t header = PERF_RECORD_SAMPLE | (uint64_t)record->misc << 32;

	if (varies(record)) {
		emit_load_imm64(e, R1, header);
		emit_load(e, 8, R2, FRAME, RING_STACK_SIZE);
		emit_alu_imm(e, BPF_LSH, R2, 48);
		emit_alu(e, BPF_OR, R1, R2);
	} else {
		header |= (uint64_t)size_of(record, record->fixed_size) << 48;
		emit_load_imm64(e, R1, header);
	}
	emit_store(e, 8, POS, 0, R1);
	if (record->id) {
		emit_load_imm64(e, R1, record->id);
		emit_store(e, 8, POS, 8, R1);
	}
}

static void emit_raw_size(struct emitter *e, const struct record *record)
{
	if (!record->has_dynamic) {
		emit_store_imm(e, 4, POS, moved(record, RAW_SIZE),
			       (int32_t)raw_size(record->fixed_size));
		return;
	}
	emit_mov_imm(e, R1, -record_payload(record));
	if (record->chain.is_there) {
		emit_load(e, 8, R2, FRAME, CHAIN_STACK_SIZE);
		emit_alu_imm(e, BPF_ADD, R2, 8);
		emit_alu(e, BPF_SUB, R1, R2);
	}
	emit_load(e, 8, R2, FRAME, front_slot(record));
	emit_alu(e, BPF_ADD, R1, R2);
	emit_store(e, 4, POS, moved(record, RAW_SIZE), R1);
}

/* Whose it is, and the payload's common fields. */
static void emit_task(struct emitter *e, const struct record *record)
{
	emit_call(e, BPF_FUNC_get_current_pid_tgid);
	emit_mov(e, R1, R0); /* tgid << 32 | tid */
	emit_alu_imm(e, BPF_RSH, R1, 32);
	emit_store(e, 4, POS, moved(record, TID), R1);
	emit_store(e, 4, POS, moved(record, TID) + 4, R0);
	if (record->chain.is_there)
		emit_chain_pass(e);
	emit_alu_imm(e, BPF_LSH, R0, 32);
	emit_alu_imm(e, BPF_OR, R0, (int32_t)record->type);
	emit_store(e, 8, POS, record_payload(record), R0);
}

void emit_record(struct emitter *e, const struct record *record,
		 const struct recorder_target *target)
{
	emit_zero_tail(e, record);
	emit_ring_time(e, target);
	emit_store(e, 8, POS, moved(record, TIME), R0);
	emit_header(e, record);
	if (record->chain.is_there)
		emit_chain_copy(e, &record->chain, moved(record, RAW_SIZE));
	emit_task(e, record);
	emit_raw_size(e, record);
}

void emit_record_end(struct emitter *e, const struct record *record)
{
	if (record->chain.is_there)
		emit_chain_return(e);
	if (record->user_stack)
		emit_user_dump_write(e);
}
