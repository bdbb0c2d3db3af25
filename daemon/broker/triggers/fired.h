/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs that a trigger has fired and what that did, with all that is known of it as the journal's fields. */
#pragma once

#include "daemon/order.h"

/* spec: of the event that it froze or paused, or, if it only notifies, its own; trigger: its name; NULL: it
 * is deleted. */
void fired_log(const struct pp_spec *spec, const struct pp_fired *by, const char *trigger);
