/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of a resolution only. */
#pragma once

#include "daemon/broker/syntax/resolve.h"
#include "proto/macro.h"

/* The event being resolved. */
struct draft {
	const struct pp_msg_create_request *request;
	const struct machine *machine;
	struct pp_spec spec;
	struct pp_parsed *parsed;
	char *sentence;
	size_t size;
};

/* Writes the error message and returns error. */
int resolve_refuse(struct draft *d, int error, const char *fmt, ...) _printf_(3, 4);
#define refuse(d, error, ...) resolve_refuse(d, error, __VA_ARGS__)

/* Each of these returns 0, or a negative errno value with an error message. */

/* Parses the text and appends its nodes to the parsed event: *ret_n more. */
int resolve_take_filter(struct draft *d, const char *text, uint32_t *ret_n);

/* Parses one more selection of the list. */
int resolve_take_selection(struct draft *d, const struct pp_msg_selection *selection);

/* Builds the texts for display: all events with commas between; the filter, or which event has
 * which filter. */
int resolve_join_texts(struct draft *d);

/* Whether the request's target can be one. */
int resolve_check_target(struct draft *d);

/*
 * Binds the draft, whose events are parsed, to its target, if it has one. 1: its process is a filter instead; d->request
 * is *filtered from then on, whose texts are to be parsed.
 */
int resolve_bind(struct draft *d, struct pp_msg_create_request *filtered);

/* Parses the request's whole list into a new parsed event, and keeps the texts. */
int resolve_take_selections(struct draft *d);

/* The number of sources of this kind. */
uint32_t resolve_count_kind(const struct pp_parsed *parsed, enum pp_source_kind kind);

/* Takes an event that traces into AUX areas, with those beside it; or finds that there is none. */
int resolve_take_aux(struct draft *d);

/* Takes the request's way to record its events, which are parsed: period, call chains, stacks, program. */
int resolve_take_manner(struct draft *d);

/* Takes the period of a change of the event `is`, whose text says what samples. */
int resolve_change_period(struct draft *d, const struct pp_msg_change_request *request,
			  const struct pp_spec *is);

/* Records per second; 0: no limit. No CPU writes more than the most that this returns. */
uint64_t resolve_rate_limit(uint64_t wanted);
