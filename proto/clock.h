/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clocks in nanoseconds, and the time of day at which CLOCK_MONOTONIC was 0. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t pp_clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC in milliseconds. */
static inline int64_t pp_clock_ms(void)
{
	return (int64_t)(pp_clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* On a busy machine another task may run between two readings, which are then milliseconds apart:
 * of several attempts, the fastest counts. Modulo 2^64. */
static inline uint64_t pp_clock_offset(void)
{
	uint64_t offset = 0, least = UINT64_MAX;

	for (int i = 0; i < 8 && least > 1000; i++) {
		uint64_t before = pp_clock_ns(CLOCK_MONOTONIC);
		uint64_t real = pp_clock_ns(CLOCK_REALTIME);
		uint64_t took = pp_clock_ns(CLOCK_MONOTONIC) - before;

		if (took < least) {
			least = took;
			offset = real - (before + took / 2);
		}
	}
	return offset;
}

/* The CLOCK_REALTIME of a CLOCK_MONOTONIC time, as these clocks stand now. */
static inline uint64_t pp_clock_real(uint64_t monotonic)
{
	return monotonic + pp_clock_offset();
}
