/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the running events match the configuration: namespaces at once, events one after the other.
 * Only differences are applied. An event that matches is not touched. A different filter, rate,
 * period or buffer changes the event; any other difference deletes it and creates it anew. Events
 * that were made from the configuration (PP_EVENT_CONFIGURED) and are no longer in it are deleted.
 * Events that others made are left alone.
 */
#pragma once

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/lifecycle/lifecycle.h"

struct pass;

struct configured_result {
	uint32_t created, changed, deleted;
	bool unfinished; /* something failed because the engine was not running */
};

struct configured {
	struct lifecycle *lifecycle;
	/* Something failed; an error message with file and line. */
	void (*complain)(void *userdata, const char *sentence);
	/* The pass has ended; parts of it may have failed. Another pass may begin from within. */
	void (*done)(void *userdata, const struct configured_result *result);
	void *userdata;

	struct pass *pass; /* under way, or NULL */
	bool stepping;
};

/* Begins a pass. None is under way, and the events are known (synced). Config and dropins stay the
 * caller's and must last until done, which may be called from within. 0; -errno. */
int configured_begin(struct configured *c, const struct config *config, const struct dropins *d);

/* Call this whenever an order has completed (lifecycle.changed). */
void configured_continue(struct configured *c);

/* Ends the pass, if there is one, without further action or report. Call this after lifecycle_done:
 * none of the pass's orders is under way then. */
void configured_stop(struct configured *c);

/* Applies the configured namespaces. One that is no longer configured only lives as long as it has
 * events, unless `keep`. 0; -ENOMEM. */
int configured_namespaces(struct lifecycle *l, const struct config *config, bool keep);
