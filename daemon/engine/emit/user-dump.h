/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Registers and stack of user space, of emitted programs, as perf lays them out (PERF_SAMPLE_REGS_USER,
 * PERF_SAMPLE_STACK_USER): at the end of a record. bpf/user-regs.h says where they come from.
 *
 * The stack's size is part of the record's. So the pages that are in memory are counted before the
 * record has a place, and read when it has: nothing else of the ring is ever part of a record.
 */
#pragma once

#include "daemon/engine/bpf/user-regs.h"
#include "daemon/engine/emit/ring-emit.h"

/* Stack slots below those of payloads at hand (generic.c, probe.c); a filter may have used them. */
enum user_dump_stack {
	USER_DUMP_STACK_FRONT = -472, /* bytes of the record in front of the dump */
	USER_DUMP_STACK_SIZE = -480,  /* bytes of the dump */
};

/* The stack's bytes, at most, of those that are wanted (0: none, and no registers), in a record that has
 * `front` others: as in perf, what makes a record larger than its size can say is cut off. */
uint32_t user_dump_stack(uint32_t wanted, uint32_t front);

/* The dump's bytes in a record, at most. 0: none. */
static inline uint32_t user_dump_size(uint32_t stack)
{
	return stack ? USER_DUMP_SIZE(stack) : 0;
}

/* Says so in the attributes that readers and perf.data get. */
static inline void user_dump_describe(const struct pp_spec *spec, struct perf_event_attr *attr)
{
	attr->sample_regs_user = spec->stack_user ? USER_REGS_MASK : 0;
	attr->sample_stack_user = spec->stack_user;
}

#define USER_DUMP_SAMPLE_TYPE (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* Counts the bytes of the stack that are there, up to `stack`. R0..R5 and POS are lost. */
void emit_user_dump_take(struct emitter *e, uint32_t stack);

/* R1, the record's size, += the dump's. R2 is lost. */
void emit_user_dump_add_size(struct emitter *e);

/* Writes it into the record at POS. R0..R5 and R9 are lost. */
void emit_user_dump_write(struct emitter *e);
