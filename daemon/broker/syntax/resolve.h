/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves a create request into a spec and a parsed event: checks every field, fills in the
 * defaults, parses texts and filters. Clients' text ends here. The caller checks rights after
 * resolve_names(), before anything else is parsed.
 */
#pragma once

#include "daemon/broker/syntax/machine.h"
#include "daemon/order.h"

#define RESOLVE_DATA_SIZE (512ULL * 1024) /* the default */
#define RESOLVE_FREQUENCY 4000		  /* Hz, as in perf record */

/* Each returns 0, or a negative errno value with an error message. */

/* Sets only the names in *ret. -EINVAL. */
int resolve_names(const struct pp_msg_create_request *request, struct pp_spec *ret, char *sentence,
		  size_t size);

/*
 * Resolves everything except creator, and except owner, group and mode, which the namespace
 * decides. Flags that do not remain part of the event (SHARE, NO_SHARE, BOOT) are left out.
 * -EINVAL, -E2BIG, -ENODEV (a CPU is offline), -ENOENT, -EACCES, -EOPNOTSUPP, -EDQUOT (max_buffer).
 */
int resolve(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, struct pp_parsed *ret_parsed, char *sentence,
	    size_t size);

/*
 * The parts of the spec that need neither the machine nor the meaning of the texts, for comparison
 * with a running event. Flags and period are the requested ones; defaults are not filled in.
 * -EINVAL, -E2BIG, -EDQUOT.
 */
int resolve_outline(const struct pp_msg_create_request *request, uint64_t max_buffer,
		    struct pp_spec *ret, char *sentence, size_t size);

/* In what the event counts that the request was resolved into; all 0: it is not bound. */
void resolve_target(const struct pp_msg_create_request *request, const struct pp_spec *spec,
		    struct pp_msg_target *ret);

/* Whether an event with this target, or none, has that of the request. */
bool resolve_is_same_target(const struct pp_msg_create_request *request,
			    const struct pp_msg_target *is);

/* Whether the request's whole list has the same filter, or none. */
bool resolve_has_one_filter(const struct pp_msg_create_request *request);

/* A change request as a spec (filter, data_size, max_rate, period, samples) and a parsed event (nodes).
 * The event is `is`; the machine, only for a period. Errors as of resolve(). */
int resolve_change(const struct pp_msg_change_request *request, const struct pp_spec *is,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size);
