/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rings and table as one thing that is asked for and answers. Knows nothing of connections. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/keeper/loaded.h"
#include "daemon/keeper/rings.h"
#include "daemon/keeper/table.h"
#include "proto/keep.h"

/*
 * How long nobody looks into the rings: between the two, ns. That is when a CPU that runs anyway
 * does it; one that sleeps is woken by the latter.
 */
struct keep_pause {
	uint64_t least, most;
};

struct keep {
	struct rings rings;
	struct table table;
	struct loaded loaded;
	bool keeping;
	bool told_untimed, told_programs;
	bool behind;	 /* there is more to apply than fits into a step */
	uint64_t looked; /* when the rings were emptied last because it was time */
	uint64_t told;	 /* when it was told last what runs */
	struct keep_pause pause;
};

int keep_init(struct keep *k);
void keep_done(struct keep *k);

/* It is time: what is old enough to be in order is applied, a step of it if it is much. */
void keep_wake(struct keep *k);
/* Whether it is; at once if there is more. While nothing is kept it never is. */
bool keep_is_due(const struct keep *k);

/* As PP_KEEP_* say. fds that are taken over become -EBADF. -ENODATA: nothing is kept; -EAGAIN: what
 * is to be in the table first is too much for now. */
int keep_rings(struct keep *k, const struct pp_keep_cpu *cpus, size_t n, int *fds);
int keep_tasks(struct keep *k, int fds[static PP_KEEP_ITERATORS]);
int keep_limit(struct keep *k, uint64_t max_memory);
int keep_take(struct keep *k, uint64_t since, uint64_t until, int *ret_fd, uint64_t *ret_size);
int keep_drop(struct keep *k);
void keep_status(struct keep *k, struct pp_keep_status *ret);
void keep_cpus(const struct keep *k, uint32_t first, struct pp_keep_answer *ret);
