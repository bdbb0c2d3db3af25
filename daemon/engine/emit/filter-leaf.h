/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns one comparison of a filter into instructions: finds its field in the event, loads it, and
 * compares it. Also holds the state that filter-emit.c has of a filter.
 */
#pragma once

#include "daemon/engine/emit/filter-emit.h"
#include "daemon/engine/emit/filter-text.h"

/* A filter that is being emitted. */
struct filter_state {
	struct emitter *e;
	const struct filter_view *view;
	const struct pp_filter_node *nodes;
	struct text_pattern *patterns; /* as many as nodes; used for those that compare text */
	struct text_tables tables;
	struct failure *f;
	const char *what; /* asks for the fields: for messages */
};

static inline bool filter_is_glob(uint32_t op)
{
	return op == PP_FILTER_GLOB || op == PP_FILTER_NOT_GLOB;
}

static inline bool filter_is_leaf(const struct pp_filter_node *node)
{
	return node->op != PP_FILTER_AND && node->op != PP_FILTER_OR && node->op != PP_FILTER_NOT;
}

#define FILTER_COMM_SIZE 16

/* The event's own field of this name; NULL: none, but it may be one that all events have (comm). */
const struct tp_field *filter_find_field(const struct tracepoint *tp, const char *name);

/* A number in R1, zero-extended. */
struct filter_number {
	uint32_t size; /* bytes: 1, 2, 4, 8 */
	bool is_signed;
};

/* R1 = the number in the field of that name, or, if the event has none, the one of all events (tid).
 * R0..R5 are lost. -EINVAL with a message: there is no such number. */
int filter_emit_number(const struct filter_state *s, const char *name, struct filter_number *ret);

/* Jumps to *out if the comparison's result is `sense`; else falls through. R0..R5 are lost. -errno
 * with a message. */
int filter_emit_leaf(const struct filter_state *s, const struct pp_filter_node *node, bool sense,
		     struct emit_labels *out);
