/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record that all emitted programs write: the header, the source's id if it has one, TID, TIME,
 * RAW, and in RAW the payload, which begins with the common fields. Knows its size, and emits
 * everything but the payload's own fields.
 */
#pragma once

#include "daemon/engine/emit/ring-emit.h"

#define RECORD_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)
#define RECORD_COMMON_SIZE 8 /* of the common fields */

struct record {
	uint64_t id;	     /* of the source; 0: the record has none */
	uint32_t type;	     /* the payload's common_type */
	uint32_t fixed_size; /* of the payload */
	bool has_dynamic;    /* more follows; the record's size is in RING_STACK_SIZE */
	uint32_t misc;	     /* PERF_RECORD_MISC_* */
};

/* The size of a record with that many bytes of payload. */
uint32_t record_size(const struct record *record, uint32_t payload);
/* Offsets in it. */
int record_time(const struct record *record);
int record_payload(const struct record *record);

/*
 * RING_STACK_SIZE and R1 = the size of a record whose payload has the fixed bytes and as many more
 * as the register tail says.
 */
void emit_record_size(struct emitter *e, const struct record *record, int tail);

/* Writes everything at POS except the payload behind the common fields. R0..R5 are lost. */
void emit_record(struct emitter *e, const struct record *record,
		 const struct recorder_target *target);
