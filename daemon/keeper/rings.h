/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The perf rings of the CPUs: mapped, emptied, and their records brought into one order. Knows
 * where a record begins and when it was, and nothing else of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

struct rings {
	struct ring **ring; /* by CPU number */
	size_t n;
	uint64_t now; /* CLOCK_MONOTONIC, after what was collected last */
	uint64_t bad; /* places where no record was, since rings_init() */
};

void rings_init(struct rings *rings);
/* Unmaps and closes all; what was in them is gone. */
void rings_unmap(struct rings *rings);

/*
 * Maps the perf event's ring, in place of the one that the CPU had, whose records it takes over. fd
 * becomes the rings' own if this succeeds. -EBADMSG: not a perf event; another -errno of the
 * kernel's.
 */
int rings_put(struct rings *rings, uint32_t cpu, uint64_t generation, int fd);

uint32_t ring_cpu(const struct ring *ring);
uint64_t ring_generation(const struct ring *ring);

/* Moves what the kernel has written into memory of ours, so that there is room for more. It does
 * not call anybody, and so can be done in the midst of anything. */
void rings_collect(struct rings *rings);

/* The kernel reads the clock in another way than we do, which may be ahead a little. */
#define RINGS_CLOCK_SLACK 10000000 /* ns */

/* A step of merging ends with the record after so long. */
#define RINGS_STEP 50000000 /* ns */

/* Collects, and hands out records up to a time, of all CPUs, in order of time. One whose time
 * cannot be comes when the one before it does. false: there are more, and the step is over. */
bool rings_merge(struct rings *rings, uint64_t until,
		 void (*apply)(void *context, const uint8_t *record, size_t size), void *context);

/* How much of a ring has been filled since this was asked last, of the one that was filled most: 1
 * is all of it, and more of it if it was emptied meanwhile. */
double rings_take_filled(struct rings *rings);

/* Half a ring or more waits for a later time than that of the last merging. */
bool rings_pressed(const struct rings *rings);
