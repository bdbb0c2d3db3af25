/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The perf rings of the CPUs: maps and empties them, and merges their records into one order. Knows
 * where a record begins and its time, nothing else of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

struct rings {
	struct ring **ring; /* by CPU number */
	size_t n;
	uint64_t now; /* CLOCK_MONOTONIC, after the last collection */
	uint64_t bad; /* places without a valid record, since rings_init() */
};

void rings_init(struct rings *rings);
/* Unmaps and closes all; unread records are lost. */
void rings_unmap(struct rings *rings);

/* Maps the perf event's ring in place of the CPU's previous one, and takes over its records. On
 * success the rings own fd. -EBADMSG: not a perf event; another -errno of the kernel's. */
int rings_put(struct rings *rings, uint32_t cpu, uint64_t generation, int fd);

uint32_t ring_cpu(const struct ring *ring);
uint64_t ring_generation(const struct ring *ring);

/* Moves the kernel's records into our memory, so that the rings have room. Calls nothing back, so
 * it is safe in the middle of any operation. */
void rings_collect(struct rings *rings);

/* The kernel reads the clock in another way than we do; its time may be slightly ahead. */
#define RINGS_CLOCK_SLACK 10000000 /* ns */

/* A merging step ends with the first record after this long. */
#define RINGS_STEP 50000000 /* ns */

/* Collects, and hands out the records of all CPUs up to a time, and to the call, in order of time. A record with
 * an impossible time comes with the one before it. false: the step is over, and more records wait. */
bool rings_merge(struct rings *rings, uint64_t until,
		 void (*apply)(void *context, const uint8_t *record, size_t size), void *context);

/* How much of the fullest ring has filled since the last call: 1 is a whole ring, and more than 1
 * is possible if it was emptied meanwhile. */
double rings_take_filled(struct rings *rings);

/* Half a ring or more waits for a time after the last merging. */
bool rings_pressed(const struct rings *rings);
