/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call chains of emitted programs, as perf lays them out (PERF_SAMPLE_CALLCHAIN): a number of words, and
 * the words: a mark in front of the kernel's half and of user space's, each with the innermost frame first.
 *
 * A chain's size is part of the record's, so it is taken into scratch memory before the record has a place,
 * and copied then.
 */
#pragma once

#include <stdbool.h>

#include "daemon/engine/emit/ring-emit.h"

/* A half of so many frames, with its mark. */
#define CHAIN_HALF_OF(frames) (8 * (1 + (frames)))
#define CHAIN_HALF_SIZE CHAIN_HALF_OF(PP_MAX_STACK)
/* In a record, at most. The verifier does not see that a variable size is a multiple of 8. */
#define CHAIN_SIZE_MAX (8 + 2 * CHAIN_HALF_SIZE + 8)

#define CHAIN_KERNEL 1U
#define CHAIN_USER 2U

struct chain {
	bool is_there;
	uint32_t halves; /* which are taken; the others are empty */
	int32_t frames;	 /* of both together, at most: 1..PP_MAX_STACK */
	/* A task can be preempted between the two, and another take a chain on its CPU: then all of the
	 * words become 0. Only in rings whose writers nest. */
	bool is_preemptible;
};

/* In stack slots that others need only later, or in other rings. */
enum chain_stack {
	CHAIN_STACK_RECORD = -40, /* the scratch memory, then the record's address */
	CHAIN_STACK_SIZE = -48,	  /* bytes of the words */
	CHAIN_STACK_TURN = RING_STACK_CLOSING,
};

/* The halves that are asked for; 0: no chain. */
static inline uint32_t chain_halves(const struct pp_spec *spec)
{
	if (!(spec->flags & PP_EVENT_CALLCHAIN))
		return 0;
	return (spec->flags & PP_EVENT_NO_KERNEL_CHAIN ? 0 : CHAIN_KERNEL) |
	       (spec->flags & PP_EVENT_NO_USER_CHAIN ? 0 : CHAIN_USER);
}

static inline int32_t chain_frames(const struct pp_spec *spec)
{
	return spec->max_stack ?: PP_MAX_STACK;
}

/* Says so in the attributes that readers and perf.data get. */
static inline void chain_describe(const struct pp_spec *spec, struct perf_event_attr *attr)
{
	uint32_t halves = chain_halves(spec);

	attr->sample_max_stack = spec->max_stack;
	attr->exclude_callchain_kernel = halves && !(halves & CHAIN_KERNEL);
	attr->exclude_callchain_user = halves && !(halves & CHAIN_USER);
}

/* The engine's scratch memory, made at first use and never closed. -errno. That of preemptible programs is
 * another one: they do not exclude those that can interrupt them, which do exclude each other. */
int chain_scratch(const struct chain *chain);

/* Takes the current chain. R0..R5 are lost. Takes *leave if the scratch memory cannot be had, which no
 * kernel does. */
void emit_chain_take(struct emitter *e, const struct chain *chain, int scratch_fd,
		     struct emit_labels *leave);

/* R1 += its size in a record. R2 is lost. */
void emit_chain_add_size(struct emitter *e);

/* Writes it at POS + offset. R0..R5 are lost. */
void emit_chain_copy(struct emitter *e, const struct chain *chain, int offset);

/* Moves POS by its size, so that what stands behind it has the offsets that it has without a chain; and
 * back. R1 is lost. */
void emit_chain_pass(struct emitter *e);
void emit_chain_return(struct emitter *e);
