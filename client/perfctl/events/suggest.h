/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * "Did you mean …?": reports a failure on a connection as call_failed() does, and where the user seems to have
 * mistyped a name, asks for the one that is most similar instead of giving the message's advice. What there
 * is to compare with is found here, at the user's cost, and no daemon looks for it.
 */
#pragma once

#include "client/perfctl/perfctl.h"

/* After a request for an event or trigger; name NULL or empty: for a namespace. Returns an exit code. */
int suggest_name(struct perfpersist *p, int error, const char *ns, const char *name);

/* After a request to record these events. Returns an exit code. */
int suggest_recordable(struct perfpersist *p, int error,
		       const struct perfpersist_selection *selections, size_t n);
