/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One-shot timers that are started and stopped repeatedly. 0; -errno. */
#pragma once

#include <systemd/sd-event.h>

#include "proto/macro.h"

#define TIMER_BACKOFF_MIN_USEC (20 * 1000ULL)

/* Creates a stopped timer, accurate to the millisecond. */
static inline int timer_add(sd_event *loop, sd_event_source **ret, sd_event_time_handler_t handler,
			    void *userdata)
{
	int r = sd_event_add_time_relative(loop, ret, CLOCK_MONOTONIC, 0, 1000, handler, userdata);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static inline int timer_start(sd_event_source *timer, uint64_t usec)
{
	int r = sd_event_source_set_time_relative(timer, usec);

	return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Starts it with a delay of *backoff, then doubles *backoff, up to max. */
static inline int timer_start_backoff(sd_event_source *timer, uint64_t *backoff, uint64_t max)
{
	uint64_t usec = *backoff;

	*backoff = MIN(usec * 2, max);
	return timer_start(timer, usec);
}

/* NULL is accepted. */
static inline void timer_stop(sd_event_source *timer)
{
	if (timer)
		sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}
