/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF programs that come and go. The kernel would tell of them as it does of processes, but every
 * listener more damages the records of the others (daemon/engine/sideband.c): so the keeper looks
 * which there are, now and then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/keeper/tasks.h"

struct loaded {
	int file;	    /* O_PATH, of an iterator; < 0: none has come */
	struct tasks there; /* as it told last */
	uint64_t told;	    /* when it did so, CLOCK_MONOTONIC, ns; 0: never */
	uint64_t looked;    /* when it was opened last, also in vain */
	uint64_t cost;	    /* how long it took to read, ns */
	uint32_t newest;    /* the highest id so far: the kernel counts up, from 1 to 2^31 */
};

void loaded_init(struct loaded *p);
void loaded_done(struct loaded *p);

/* Takes over the descriptor. */
void loaded_put(struct loaded *p, int file);

/* Whether it is time: once a second, or so seldom that it takes a hundredth of the time. */
bool loaded_is_due(const struct loaded *p, uint64_t now);

/*
 * Tells the table which came and went since the last look: of the former when their loading began,
 * of the latter now, or when another took their place in memory. Those that did both are counted,
 * by their ids. 0, also without a descriptor; -EBADMSG: what the iterator says is damaged;
 * -ENOMEM; -errno of open(2) and read(2).
 */
int loaded_look(struct loaded *p, struct table *t, void (*busy)(void *context), void *context);

/* The same of what the iterator has told by now, which is taken over. -EBADMSG, -ENOMEM. */
int loaded_told(struct loaded *p, struct table *t, struct tasks *there, uint64_t now);
