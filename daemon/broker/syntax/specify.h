/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a create request into the spec of an event and its recipe: checks every field, fills in
 * what was left open, has texts and filters parsed. Strangers' text ends here, and rights are
 * asked between the names and the rest: who may not create there gets nothing parsed.
 */
#pragma once

#include "daemon/broker/syntax/machine.h"
#include "daemon/order.h"

#define SPECIFY_DATA_SIZE (512ULL * 1024) /* unless the request says */
#define SPECIFY_FREQUENCY 4000		  /* Hz, as perf record's */

/* Each returns 0, or a negative errno value with a sentence. */

/* The names alone, and nothing else of *ret. -EINVAL. */
int specify_names(const struct pp_msg_create_request *request, struct pp_spec *ret, char *sentence,
		  size_t size);

/*
 * All but owner, group, mode, which are the namespace's, and creator. Flags that do not describe
 * the event (SHARE, NO_SHARE, BOOT) are left out. -EINVAL, -E2BIG, -ENODEV (a CPU is offline),
 * -ENOENT, -EACCES, -EOPNOTSUPP, -EDQUOT (max_buffer).
 */
int specify(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, struct pp_recipe *ret_recipe, char *sentence,
	    size_t size);

/*
 * What of the spec can be said without looking at the machine, nor at what the texts mean, to be
 * compared with that of an event that runs: flags and period are as they were asked for, not as
 * they will be where they were left open. -EINVAL, -E2BIG, -EDQUOT.
 */
int specify_outline(const struct pp_msg_create_request *request, uint64_t max_buffer,
		    struct pp_spec *ret, char *sentence, size_t size);

/* What a change request says, in a spec (filter, data_size, max_rate) and a recipe (nodes). */
int specify_change(const struct pp_msg_change_request *request, uint64_t max_buffer,
		   struct pp_spec *ret, struct pp_recipe *ret_recipe, char *sentence, size_t size);
