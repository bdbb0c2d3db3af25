/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns filters (daemon/filter.h) into instructions. Checks names and types against the event's
 * fields; the instructions decide as ftrace's filters do:
 *
 *   numbers   by the field's size and sign; a value that does not fit it is refused
 *   text      char arrays, dynamic text (__data_loc, __rel_loc), and the target of a char
 *             pointer: the first 255 bytes. Unreadable text fails every comparison, also !=
 *
 * Knows nothing of rings, nor of the event's later life.
 */
#pragma once

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/failure.h"
#include "daemon/engine/recorders/recorder.h"
#include "daemon/filter.h"

#define FILTER_STACK 288      /* bytes of stack that a filter may use */
#define FILTER_STACK_SMALL 48 /* … if the event's only text is in arrays outside of a context */

/* Where the event's fields are when the filter runs. */
struct filter_view {
	const struct tracepoint *tp; /* NULL: an event without fields */
	int base;	  /* register that points at them; survives calls (R6..R9, R10) */
	int bias;	  /* from there to the payload's beginning */
	bool is_context;  /* base is a tracepoint program's context: loads at constant offsets only,
			   * none of the common fields; else `size` bytes can be read */
	uint32_t size;	  /* of the payload, at least the fixed part */
	int stack;	  /* the filter may use the stack below FRAME + stack; 0, -8, -16, … */
	int ip_offset;	  /* offset of the field `ip`, of 8 bytes, in the payload; -1: none */
	bool user_memory; /* char pointers point into user space */
};

/*
 * Emits the filter of n checked nodes: falls through if the filter holds; else takes one of the
 * jumps added to *no. R0..R5 are lost. -EINVAL (no such field, an operation or a value that does
 * not fit it), -ENOENT (no such cgroup), -EOPNOTSUPP, with a message in *f. The emitter owns the
 * tables that the instructions refer to (emit_keep_fd): keep it until the program is loaded.
 */
int filter_emit(struct emitter *e, const struct pp_filter_node *nodes, size_t n,
		const struct filter_view *view, struct emit_labels *no, struct failure *f);

/*
 * The source's filter, the target's condition, and what fires its trigger, as the body of a subprogram.
 * R1 points at payload_size readable bytes of the payload (map memory; also the dynamic parts, if the
 * event has any); R0 = 1 if there is to be a record, else 0. An event without fields has a payload of
 * struct { __u64 ip; }. *ret must be empty; call emit_done() on it when the program is loaded.
 */
int filter_subprogram(const struct source *source, const struct recorder_target *target,
		      uint32_t payload_size, struct emitter *ret, struct failure *f);

/* The failure when the kernel refuses a program with a filter as too large: -E2BIG with a
 * message. */
int filter_too_large(struct failure *f);
