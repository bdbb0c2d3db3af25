/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs that a trigger has fired and what it froze, with all that is known of it as the journal's fields. */
#pragma once

#include "daemon/broker/state/tapes.h"

/* trigger: its name; NULL: it is deleted. */
void fired_log(const struct tape *tape, const char *trigger);
