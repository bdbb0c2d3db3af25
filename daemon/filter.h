/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters in the syntax of perf and ftrace (Documentation/trace/events.rst, "Event filtering"):
 *
 *   FILTER  := TERM ( && | || TERM )…     && binds stronger than ||
 *   TERM    := ! TERM | ( FILTER ) | FIELD OP VALUE
 *   OP      := == != < <= > >= &          numbers: decimal, 0x…, 0…, negative, 'c'
 *              == != ~ !~                 text, in "" or '' or bare; ~ is a glob: * ? [...]
 *
 * FIELD is a field of the event, or, if the event has none of that name:
 *   comm COMM (text), cpu CPU, pid PID (of the process), tid TID, uid UID    of the current task
 *   ip IP                                           sampling events and probes
 *   cgroup CGROUP == != "/path" or "UNIT"           a cgroup (version 2) and all below it
 * common_pid and the other common fields are fields of every tracepoint.
 *
 * 'c' is both: a node with is_text 1, text "c" and value its character's number, for numeric
 * fields; other text has value 0. A number's text is its spelling (or empty). A word that begins
 * like a number is a number, except after ~ and !~. No character is special within quotes.
 *
 * The broker parses untrusted text: pure, bounded code. Only the engine knows an event's fields: it
 * checks names and types against the event's format when it emits the program.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PP_FILTER_NODES_MAX 128 /* of all filters of one event */
#define PP_FILTER_DEPTH_MAX 32
#define PP_FILTER_FIELD_SIZE 64
#define PP_FILTER_TEXT_SIZE 256

enum pp_filter_op {
	PP_FILTER_AND = 1, /* its two operands follow, each a subtree */
	PP_FILTER_OR = 2,
	PP_FILTER_NOT = 3, /* one subtree follows */
	/* Leaves. */
	PP_FILTER_EQ = 4,
	PP_FILTER_NE = 5,
	PP_FILTER_LT = 6,
	PP_FILTER_LE = 7,
	PP_FILTER_GT = 8,
	PP_FILTER_GE = 9,
	PP_FILTER_BITS = 10, /* any of the bits is set */
	PP_FILTER_GLOB = 11,
	PP_FILTER_NOT_GLOB = 12,
};

/* A filter is an array of these: a tree, each node before its operands. */
struct pp_filter_node {
	uint32_t op;	      /* enum pp_filter_op */
	uint32_t is_text;     /* the value is text */
	uint32_t is_negative; /* it was written with a minus sign (value is two's complement) */
	uint32_t reserved;
	uint64_t value;
	char field[PP_FILTER_FIELD_SIZE];
	char text[PP_FILTER_TEXT_SIZE];
};

/*
 * Parses text into at most cap nodes. Returns their number (> 0); -EINVAL with an error message
 * that says the fault, its byte and the possible continuations; -E2BIG, also with a message (too
 * many nodes, too deep, or a word too long).
 */
int pp_filter_parse(const char *text, struct pp_filter_node *nodes, size_t cap, char *sentence,
		    size_t size);

/* Whether the n nodes are exactly one well-formed tree. 0 or -EBADMSG. */
int pp_filter_check(const struct pp_filter_node *nodes, size_t n);

/* The number of nodes in the subtree that begins at nodes[0] of a checked filter. */
size_t pp_filter_span(const struct pp_filter_node *nodes);

/* Does text match a glob of * ? and [...] ([!...], ranges)? The emitted programs must match
 * alike. */
int pp_glob_match(const char *glob, const char *text);
