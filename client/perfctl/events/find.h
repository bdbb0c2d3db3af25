/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the events that names or globs on a command line mean. */
#pragma once

#include "client/perfctl/perfctl.h"

/*
 * names: NAME (in `default`), NAMESPACE/NAME, NAMESPACE/ (all of it); either part may be a shell
 * glob; n 0: all that the caller may read. Each event comes once, in the order of the names,
 * then of ids. *ret_infos is one array for free(3). Returns an exit code; has complained if it is
 * not EXIT_OK, also if a name fits no event.
 */
int find_events(struct call *call, struct perfpersist *p, char **names, size_t n,
		struct perfpersist_info **ret_infos, size_t *ret_n);
