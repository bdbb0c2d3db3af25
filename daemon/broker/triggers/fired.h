/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs that a trigger has fired and what that did, with all that is known of it as the journal's fields. */
#pragma once

#include "daemon/broker/state/event.h"

/* The firings of a trigger that only notifies are told so often at most. Those in between are counted, and
 * told together. */
#define FIRED_TELL_EVERY 1000000000ULL /* ns */

/* spec: of the event that it froze or paused; trigger: its name; NULL: it is deleted. */
void fired_log(const struct pp_spec *spec, const struct pp_fired *by, const char *trigger);

/* The trigger e, which only notifies, has fired. Logs that, or keeps it for the next message. Returns
 * whether it was logged. */
bool fired_tell(struct event *e, const struct pp_fired *by);

/* Logs what is kept, and so many firings besides of which nothing else is known. Returns whether there was
 * any. */
bool fired_tell_rest(struct event *e, uint64_t unread);
