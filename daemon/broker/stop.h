/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stop that ends all events (KeepEvents=no): deletes the newest first, so that second names go
 * before the rings they share. What triggers had frozen goes, too. Nobody can create events
 * meanwhile. It runs as long as it makes progress. The log names events that could not be deleted;
 * they go on recording.
 */
#pragma once

#include "daemon/broker/lifecycle/lifecycle.h"

struct stop {
	struct waiter waiter; /* first: our waiter is the stop */

	/* The caller sets these. */
	struct lifecycle *lifecycle;
	void (*ended)(
		void *userdata); /* everything possible is done; called once, maybe from within */
	void *userdata;

	sd_event_source *timer;
	const struct event *about; /* subject of the order under way, or NULL */
	uint64_t before;	   /* the next event's id is below this */
	uint64_t tape, released;   /* subject of an order under way, or 0; of the last one */
	size_t deleted;
	uint64_t told; /* when systemd last heard of progress, CLOCK_MONOTONIC, us */
	bool again;    /* a client's order ended meanwhile: starts from the newest again */
	bool begun, stepping;
};

/* 0; -errno: not possible. */
int stop_begin(struct stop *s, sd_event *loop);

/* Call this whenever an order has completed, or events came or went (lifecycle.changed). */
void stop_continue(struct stop *s);

/* Call this before lifecycle_done; accepts a stop that never began. */
void stop_done(struct stop *s);
