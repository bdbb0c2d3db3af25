/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stop that is to be an end (KeepEvents=no): all events are deleted, the newest first, so that
 * second names go before the rings they share. Nobody can create any meanwhile. It takes as long as
 * it gets on; what cannot be ended is named in the log, and records on.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

struct stop {
	struct waiter waiter; /* first: our waiter is the stop */

	/* To be filled in. */
	struct lifecycle *lifecycle;
	void (*ended)(void *userdata); /* all has been done that can be; once, maybe from within */
	void *userdata;

	sd_event_source *timer;
	const struct event *about; /* of the order under way, or NULL */
	uint64_t before;	   /* the next one's id is below this */
	size_t deleted;
	uint64_t told; /* when systemd was last told that it gets on, CLOCK_MONOTONIC, us */
	bool again;    /* what others had ordered ends meanwhile: from the newest on again */
	bool begun, stepping;
};

/* 0; -errno: it cannot be done. */
int stop_begin(struct stop *s, sd_event *loop);

/* Whenever an order has ended, or events came or went (lifecycle.changed). */
void stop_continue(struct stop *s);

/* Before lifecycle_done; accepts one that never began. */
void stop_done(struct stop *s);
