// SPDX-License-Identifier: LGPL-2.1-or-later
/* The record of emitted programs. See record-emit.h. */
#include "daemon/engine/emit/record-emit.h"

#include "proto/macro.h"

enum { R0, R1, R2, R3, POS = RING_POS, FRAME = RING_FRAME };

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

uint32_t record_size(const struct record *record, uint32_t payload)
{
	return (uint32_t)record_payload(record) + raw_size(payload);
}

int record_time(const struct record *record)
{
	return moved(record, TIME);
}

int record_payload(const struct record *record)
{
	return moved(record, PAYLOAD);
}

void emit_record_size(struct emitter *e, const struct record *record, int tail)
{
	emit_mov(e, R1, tail);
	emit_alu_imm(e, BPF_ADD, R1, (int32_t)record->fixed_size + 4 + 7);
	emit_alu_imm(e, BPF_AND, R1, ~7);
	emit_alu_imm(e, BPF_ADD, R1, moved(record, RAW_SIZE));
	emit_store(e, 8, FRAME, RING_STACK_SIZE, R1);
}

/* Zeroes the padding behind the payload by zeroing the record's last 8 bytes first. */
static void emit_zero_tail(struct emitter *e, const struct record *record)
{
	if (!record->has_dynamic) {
		emit_store_imm(e, 8, POS, (int)record_size(record, record->fixed_size) - 8, 0);
		return;
	}
	emit_load(e, 8, R1, FRAME, RING_STACK_SIZE);
	emit_alu(e, BPF_ADD, R1, POS);
	emit_store_imm(e, 8, R1, -8, 0);
}

/* The record's own size and the payload's. */
static void emit_sizes(struct emitter *e, const struct record *record)
{
	uint64_t header = PERF_RECORD_SAMPLE | (uint64_t)record->misc << 32;

	if (record->has_dynamic) {
		emit_load_imm64(e, R1, header);
		emit_load(e, 8, R2, FRAME, RING_STACK_SIZE);
		emit_mov(e, R3, R2);
		emit_alu_imm(e, BPF_SUB, R3, record_payload(record));
		emit_store(e, 4, POS, moved(record, RAW_SIZE), R3);
		emit_alu_imm(e, BPF_LSH, R2, 48);
		emit_alu(e, BPF_OR, R1, R2);
	} else {
		header |= (uint64_t)record_size(record, record->fixed_size) << 48;
		emit_load_imm64(e, R1, header);
		emit_store_imm(e, 4, POS, moved(record, RAW_SIZE),
			       (int32_t)raw_size(record->fixed_size));
	}
	emit_store(e, 8, POS, 0, R1);
}

void emit_record(struct emitter *e, const struct record *record,
		 const struct recorder_target *target)
{
	emit_zero_tail(e, record);
	emit_ring_time(e, target);
	emit_store(e, 8, POS, moved(record, TIME), R0);
	emit_call(e, BPF_FUNC_get_current_pid_tgid);
	emit_mov(e, R1, R0); /* tgid << 32 | tid */
	emit_alu_imm(e, BPF_RSH, R1, 32);
	emit_store(e, 4, POS, moved(record, TID), R1);
	emit_store(e, 4, POS, moved(record, TID) + 4, R0);
	emit_alu_imm(e, BPF_LSH, R0, 32);
	emit_alu_imm(e, BPF_OR, R0, (int32_t)record->type);
	emit_store(e, 8, POS, record_payload(record), R0);
	emit_sizes(e, record);
	if (record->id) {
		emit_load_imm64(e, R1, record->id);
		emit_store(e, 8, POS, 8, R1);
	}
}
