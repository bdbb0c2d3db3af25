/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves a create request into a spec and a parsed event: checks every field, fills in what was
 * left open, parses texts and filters. Strangers' text ends here. The caller checks rights after
 * resolve_names(), before anything else is parsed.
 */
#pragma once

#include "daemon/broker/syntax/machine.h"
#include "daemon/order.h"

#define RESOLVE_DATA_SIZE (512ULL * 1024) /* unless the request says */
#define RESOLVE_FREQUENCY 4000		  /* Hz, as perf record's */

/* Each returns 0, or a negative errno value with a sentence. */

/* The names alone, and nothing else of *ret. -EINVAL. */
int resolve_names(const struct pp_msg_create_request *request, struct pp_spec *ret, char *sentence,
		  size_t size);

/*
 * All but owner, group, mode, which are the namespace's, and creator. Flags that do not describe
 * the event (SHARE, NO_SHARE, BOOT) are left out. -EINVAL, -E2BIG, -ENODEV (a CPU is offline),
 * -ENOENT, -EACCES, -EOPNOTSUPP, -EDQUOT (max_buffer).
 */
int resolve(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, struct pp_parsed *ret_parsed, char *sentence,
	    size_t size);

/*
 * What of the spec can be said without looking at the machine, nor at what the texts mean, to be
 * compared with that of an event that runs: flags and period are as they were asked for, not as
 * they will be where they were left open. -EINVAL, -E2BIG, -EDQUOT.
 */
int resolve_outline(const struct pp_msg_create_request *request, uint64_t max_buffer,
		    struct pp_spec *ret, char *sentence, size_t size);

/* Whether all that the request lists has the same filter, or none. */
bool resolve_has_one_filter(const struct pp_msg_create_request *request);

/* What a change request says, in a spec (filter, data_size, max_rate) and a parsed event (nodes). */
int resolve_change(const struct pp_msg_change_request *request, uint64_t max_buffer,
		   struct pp_spec *ret, struct pp_parsed *ret_parsed, char *sentence, size_t size);
