/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One firing of a trigger becomes one file of the spool, and its tapes are released. */
#pragma once

#include "client/perfctl/events/collect.h"

struct firing {
	struct call *call;
	struct perfpersist *p;
	const struct collect_options *options;
	const struct perfpersist_tape *tapes; /* of one firing: tapes[0 … n) */
	size_t n;
	bool is_last_look; /* tapes that are gone by now are left out */
	bool *in_vain; /* until something is written: somebody else takes what older files free */
};

/*
 * Writes what no file has yet, and releases all of it. 0; -ESTALE: others save or release some of it just now,
 * so the tapes are to be listed again; -ECONNRESET: the daemon is gone; another -errno: what could not be written
 * waits, and this has complained.
 */
int firing_save(const struct firing *f);
