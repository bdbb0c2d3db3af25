/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What resolve.c and resolve-texts.c share, and nobody else sees. */
#pragma once

#include "daemon/broker/syntax/resolve.h"
#include "proto/macro.h"

/* An event in the making. */
struct draft {
	const struct pp_msg_create_request *request;
	const struct machine *machine;
	struct pp_spec spec;
	struct pp_parsed *parsed;
	char *sentence;
	size_t size;
};

/* Says what is wrong and returns error. */
int resolve_refuse(struct draft *d, int error, const char *fmt, ...) _printf_(3, 4);
#define refuse(d, error, ...) resolve_refuse(d, error, __VA_ARGS__)

/* Each of these returns 0, or a negative errno value with a sentence. */

/* Parses the text into the parsed event's nodes, behind those that are there: *ret_n more. */
int resolve_take_filter(struct draft *d, const char *text, uint32_t *ret_n);

/* The texts for people: all events with commas between; the filter, or what is filtered how. */
int resolve_join_texts(struct draft *d);

/* Parses all that the request lists into a new parsed event, and keeps the texts. */
int resolve_take_selections(struct draft *d);
