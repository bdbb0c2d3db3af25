/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists of triggers and tapes, from messages. Knows neither sockets nor what a trigger does. */
#pragma once

#include "client/perfpersist.h"
#include "proto/protocol.h"

/* v is one array for free(3). */
struct client_triggers {
	struct perfpersist_trigger *v;
	size_t n, cap;
};

struct client_tapes {
	struct perfpersist_tape *v;
	size_t n, cap;
};

void client_triggers_done(struct client_triggers *t);
int client_triggers_add(struct client_triggers *t, const struct pp_msg_trigger *m);
void client_tapes_done(struct client_tapes *t);
int client_tapes_add(struct client_tapes *t, const struct pp_msg_tape *m);
