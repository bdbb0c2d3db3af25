/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rings and table as one object, with the requests' operations. Knows nothing of connections. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/keeper/loaded.h"
#include "daemon/keeper/rings.h"
#include "daemon/keeper/table.h"
#include "proto/keep.h"

/* Bounds, in ns, for the time between two looks into the rings. A CPU that runs anyway looks after
 * the first; the second wakes a sleeping one. */
struct keep_pause {
	uint64_t least, most;
};

struct keep {
	struct rings rings;
	struct table table;
	struct loaded loaded;
	bool keeping;
	bool told_untimed, told_programs;
	bool behind;	 /* more records wait than one step applies */
	uint64_t looked; /* when the rings were last emptied on schedule */
	uint64_t told;	 /* when the engine's iterators last told what runs */
	bool untold;	 /* a CPU has come since, on which others may have begun to run before */
	struct keep_pause pause;
};

int keep_init(struct keep *k);
void keep_done(struct keep *k);

/* Call when due: applies the records that are old enough to be in order, at most one step of
 * them. */
void keep_wake(struct keep *k);
/* Whether keep_wake() is due: at once while more records wait, never while nothing is kept. */
bool keep_is_due(const struct keep *k);

/* Called from long operations, with the struct keep: the rings must not fill up meanwhile. */
void keep_busy(void *context);

/* See PP_KEEP_*. Descriptors that are taken over become -EBADF. -ENODATA: nothing is kept; -EAGAIN:
 * too many records would have to be applied first. */
int keep_rings(struct keep *k, const struct pp_keep_cpu *cpus, size_t n, int *fds);
int keep_tasks(struct keep *k, int fds[static PP_KEEP_ITERATORS]);
int keep_limit(struct keep *k, uint64_t max_memory);
int keep_take(struct keep *k, uint64_t since, uint64_t until, int *ret_fd, uint64_t *ret_size);
int keep_drop(struct keep *k);
void keep_status(struct keep *k, struct pp_keep_status *ret);
void keep_cpus(const struct keep *k, uint32_t first, struct pp_keep_answer *ret);
