/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a create request into the spec of an event: checks every field, fills in what was
 * left open. Pure; strangers' text ends here.
 */
#ifndef PP_BROKER_SPECIFY_H
#define PP_BROKER_SPECIFY_H

#include "daemon/broker/machine.h"
#include "daemon/order.h"

#define SPECIFY_DATA_SIZE (512ULL * 1024) /* unless the request says */
#define SPECIFY_FREQUENCY 4000		  /* Hz, as perf record's */

/*
 * *ret lacks only owner, group and mode, which are the namespace's. 0; a negative errno value
 * with a sentence: -EINVAL, -ENODEV (a CPU is offline), -EOPNOTSUPP, -EDQUOT (max_buffer).
 */
int specify(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, char *sentence, size_t size);

#endif
