/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes what runs what the configuration says: namespaces at once, events one after the other.
 * Only the difference is applied. An event that is as it is wanted is not touched; one that wants
 * another filter, rate or buffer is changed; any other difference means deleting it and creating
 * it anew; and those that were made from the configuration (PP_EVENT_CONFIGURED) and are not in
 * it any more are deleted. Events that others made are left alone.
 */
#pragma once

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/lifecycle/lifecycle.h"

struct pass;

struct configured_result {
	uint32_t created, changed, deleted;
	bool unfinished; /* something failed because the engine was away */
};

struct configured {
	struct lifecycle *lifecycle;
	/* Something could not be had; a whole sentence, with file and line. */
	void (*complain)(void *userdata, const char *sentence);
	/* All has been done, or has failed. Another pass may begin from within. */
	void (*done)(void *userdata, const struct configured_result *result);
	void *userdata;

	struct pass *pass; /* under way, or NULL */
	bool stepping;
};

/* Begins a pass; none is under way, and the events are known (synced). Config and dropins stay the
 * caller's, and must last until done, which may be called from within. 0; -errno. */
int configured_begin(struct configured *c, const struct config *config, const struct dropins *d);

/* To be called whenever an order has ended (lifecycle.changed). */
void configured_continue(struct configured *c);

/* Ends the pass, if there is one, with nothing more done or said. By then no order of its is under
 * way: after lifecycle_done. */
void configured_stop(struct configured *c);

/* What the configuration says of namespaces; those that it does not name any more are only kept
 * as long as they have events, unless `keep`. 0; -ENOMEM. */
int configured_namespaces(struct lifecycle *l, const struct config *config, bool keep);
