/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells of a snapshot that was written: by a line on stdout, or, if that is the journal, by an entry
 * with all that is known of it. conf/perfpersist.catalog has a text for such an entry. */
#pragma once

#include "client/perfctl/events/spool.h"
#include "client/perfctl/events/take.h"

void announce(const char *path, const struct spooled *file, const struct perfpersist_tape *by,
	      const struct take_result *result);
