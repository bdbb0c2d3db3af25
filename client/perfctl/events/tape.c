// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/tape.h"

#include <string.h>

#include "proto/fired.h"

const char *tape_trigger(const struct perfpersist_tape *t)
{
	return *t->trigger_name ? t->trigger_name : PP_TRIGGER_REMOVED;
}

bool tape_is_of(const struct perfpersist_tape *t, const struct event_name *trigger)
{
	return !strcmp(t->ns, trigger->ns) && !strcmp(tape_trigger(t), trigger->name);
}

int tape_not_found(const struct event_name *trigger)
{
	complain("%s/%s has frozen nothing that waits", trigger->ns, trigger->name);
	return EXIT_NOT_FOUND;
}
