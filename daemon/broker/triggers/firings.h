/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the instance's ring buffer of firings (daemon/trigger.h), which programs of triggers write.
 * A trigger fires no more often than its hold-off says, so neither do they wake us.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/broker/handout/ringbuf.h"
#include "daemon/trigger.h"

struct firings {
	/* The caller sets these; borrowed. */
	sd_event *loop;
	const char *registry;
	void (*fired)(void *userdata, const struct pp_fired *fired);
	void (*done)(void *userdata); /* all that was there has been told */
	void *userdata;

	int fd; /* < 0: not open */
	struct ringbuf ring;
	sd_event_source *io;
	sd_event_source *timer; /* listens again */
	uint64_t debt, paid;	/* ns: of time that was taken, as of then (CLOCK_MONOTONIC) */
};

/* There is a trigger: opens the ring buffer, unless it is open. What was written before any broker
 * listened is read at once. 0; -ENOENT: the engine has not made it yet; -errno. */
int firings_listen(struct firings *f);

/* Reads what is there, in case a wakeup was lost. */
void firings_look(struct firings *f);

void firings_done(struct firings *f);
