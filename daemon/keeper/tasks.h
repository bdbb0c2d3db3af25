/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine's iterators say (daemon/tasks.h), read whole, and told to the table. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table;

#define TASKS_SIZE_MAX (256UL << 20) /* of one iterator */
#define TASKS_READ (256UL << 10)     /* at once; what is read at most has room for several of it */

struct tasks {
	uint8_t *bytes;
	size_t size;
};

/*
 * Reads an iterator to its end; busy() is called now and then. If it has more than `max` bytes to
 * say, the processes of which it says most are cut short, and nobody else. -EFBIG: there is no end
 * of processes.
 */
int tasks_read(int fd, size_t max, void (*busy)(void *context), void *context, struct tasks *ret);
void tasks_free(struct tasks *tasks);

/*
 * Tells the table who was there (at `time` or later) and what they had mapped. All records up to
 * now must have been applied: what they say is the truth, and whoever has ended stays so. Processes
 * that were cut short are counted as lessened.
 * -EBADMSG: an entry is none; what came before it has been told.
 */
int table_tell(struct table *t, uint64_t time, const struct tasks *tasks, const struct tasks *maps);
