/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the configuration wants, made into specs as a client's requests are. */
#pragma once

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/syntax/machine.h"
#include "daemon/broker/syntax/resolve.h"

/*
 * As resolve(), with PP_EVENT_CONFIGURED and the creator; owner, group and mode are the caller's.
 * On failure *ret_line is where in the event's file the reason stands.
 */
int dropin_resolve(const struct dropin_event *e, const struct pp_msg_create_request *request,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size, unsigned *ret_line);

/* Whether this is no fault of an event that need not be there. error: positive errno value. */
bool dropin_is_excused(const struct dropin_event *e, int error);

/*
 * Tells all that is wrong with the texts of those that are enabled, a sentence a line; what depends
 * on which CPUs are online, or on the kernel's tracepoints, shows only when they are created.
 * Returns how many faults there are, or -ENOMEM.
 */
int dropins_check(const struct dropins *d, uint64_t max_buffer, FILE *complaints);
