/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose tapes they are: what a trigger has frozen, as its user names it. */
#pragma once

#include <stdbool.h>

#include "client/perfctl/perfctl.h"

/* The trigger's name, or PP_TRIGGER_REMOVED. */
const char *tape_trigger(const struct perfpersist_tape *t);

bool tape_is_of(const struct perfpersist_tape *t, const struct event_name *trigger);

/* Complains that there are none; returns EXIT_NOT_FOUND. */
int tape_not_found(const struct event_name *trigger);
