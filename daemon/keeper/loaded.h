/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF programs that are loaded and unloaded. The kernel would report them like processes, but every
 * additional listener damages others' records (daemon/engine/sideband.c). So the keeper lists the
 * programs now and then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/keeper/tasks.h"

struct loaded {
	int file;	    /* O_PATH, of an iterator; < 0: not received yet */
	struct tasks there; /* its last report */
	uint64_t told;	    /* time of that report, CLOCK_MONOTONIC, ns; 0: none */
	uint64_t looked;    /* time of the last attempt, failed or not */
	uint64_t cost;	    /* time that reading took, ns */
	uint32_t newest;    /* highest id so far: the kernel counts up, from 1 to 2^31 */
};

void loaded_init(struct loaded *p);
void loaded_done(struct loaded *p);

/* Takes over the descriptor. */
void loaded_put(struct loaded *p, int file);

/* Whether a look is due: once a second, or less often, so that looking takes a hundredth of the
 * time. */
bool loaded_is_due(const struct loaded *p, uint64_t now);

/*
 * Tells the table which programs came and went since the last look. A program came when its loading
 * began; it went now, or when another one took its place in memory. Programs that did both are
 * counted, by their ids. 0, also without a descriptor; -EBADMSG: the iterator's output is damaged;
 * -ENOMEM; -errno of open(2) and read(2).
 */
int loaded_look(struct loaded *p, struct table *t, void (*busy)(void *context), void *context);

/* Likewise for output that was read already, which is taken over. -EBADMSG, -ENOMEM. */
int loaded_told(struct loaded *p, struct table *t, struct tasks *there, uint64_t now);
