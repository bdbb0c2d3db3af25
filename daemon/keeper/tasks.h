/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the output of the engine's iterators (daemon/tasks.h) and applies it to the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table;

#define TASKS_SIZE_MAX (256UL << 20) /* of one iterator */
#define TASKS_READ (256UL << 10)     /* bytes a read; the buffer has room for several */

struct tasks {
	uint8_t *bytes;
	size_t size;
	bool unfinished; /* it has not come to its end: there are more processes */
};

/* The beginning of every entry. */
struct tasks_head {
	uint32_t type, size, pid;
};

/* Our own entry, behind the rest of a process that was cut short. */
#define TASKS_CUT 0
struct tasks_cut {
	uint32_t type, size;
	uint32_t pid, reserved;
};

/* 1: there is a whole entry; 0: there is not. -EBADMSG: it is not valid. */
int tasks_head_at(const struct tasks *tasks, size_t at, struct tasks_head *ret);

/*
 * Reads an iterator to its end, or until `deadline` (CLOCK_MONOTONIC, ns; 0: none), which only
 * a pipe (pump.h) keeps where a read blocks; busy() is called from time to time. If the output
 * exceeds `max` bytes, only the processes with the most output are cut short. -EFBIG: too many
 * processes.
 */
int tasks_read(int fd, size_t max, uint64_t deadline, void (*busy)(void *context), void *context,
	       struct tasks *ret);
void tasks_free(struct tasks *tasks);

/*
 * Tells the table which processes ran (at `time` or later) and their mappings. The caller has
 * applied all records up to now: records take precedence, and ended processes stay ended. Processes
 * that were cut short, or not reached by an unfinished list of mappings, are counted as lessened;
 * an unfinished list of tasks counts as one lost record. -EBADMSG: an entry is damaged; those
 * before it are applied.
 */
int table_tell(struct table *t, uint64_t time, const struct tasks *tasks, const struct tasks *maps);
