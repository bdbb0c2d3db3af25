/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves configured events into specs, as a client's requests are. */
#pragma once

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/syntax/machine.h"
#include "daemon/broker/syntax/resolve.h"

/*
 * As resolve(), with PP_EVENT_CONFIGURED and the creator; the caller sets owner, group and mode. On
 * failure *ret_line is the line of the fault in the event's file.
 */
int dropin_resolve(const struct dropin_event *e, const struct pp_msg_create_request *request,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size, unsigned *ret_line);

/* What the trigger is, with its condition settled; dropin_resolve() has checked that it can be. 0;
 * -EINVAL, -ENOMEM with a message. */
int dropin_trigger(const struct dropin_event *e, const struct pp_msg_create_request *request,
		   struct pp_trigger_spec *ret, char *sentence, size_t size);

/* Whether this error is acceptable for an optional event. error: positive errno value. */
bool dropin_is_excused(const struct dropin_event *e, int error);

/*
 * Reports every fault in the texts of enabled events, one per line. Faults that depend on the
 * online CPUs or on the kernel's tracepoints only show at creation. Returns the number of faults,
 * or -ENOMEM.
 */
int dropins_check(const struct dropins *d, uint64_t max_buffer, FILE *complaints);
