/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells watchers and the journal of firings: of a trigger that only notifies at once, or together with the
 * next ones (triggers/fired.h), of all others when it is done to their targets.
 */
#pragma once

#include "daemon/broker/request/watchers.h"
#include "daemon/broker/triggers/triggers.h"

struct telling {
	/* The caller sets these; borrowed. */
	sd_event *loop;
	const char *registry;
	const struct lifecycle *lifecycle;
	struct watchers *watchers;
	struct triggers *triggers;

	sd_event_source *rests; /* tells what fired_tell() has kept; NULL until there was any */
};

void telling_done(struct telling *t);

/* A trigger has fired. */
void telling_fired(struct telling *t, const struct pp_fired *fired);

/* The event is about to go: tells what is kept of it. */
void telling_last(struct telling *t, const struct event *e);

/* This has become of the event of this spec. */
void telling_log(struct telling *t, const struct pp_spec *spec, const struct pp_fired *by);

/* Looks which firings the ring buffer had no room for; triggers_continue() follows. */
void telling_look(struct telling *t);
