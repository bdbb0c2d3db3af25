/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a file, read in blocks that are cached. It is not mapped: who else has the file may
 * cut it off meanwhile, and that would be a SIGBUS. What cannot be read twice (a pipe) is first
 * copied into a file without a name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SOURCE_READ_MAX 0x10000 /* in one piece: records have 16 bits for their size */

struct source {
	int fd;
	int copy; /* of a pipe; else -EBADF */
	uint64_t size;
	struct source_block *blocks;
	uint8_t *joined; /* what lies in two blocks or more */
};

/* -EBADMSG (trace_error()), -ENOMEM, -errno. */
int source_open(struct source *s, int fd);
void source_done(struct source *s);

/* At most SOURCE_READ_MAX bytes, until the next call. NULL: they are not there. */
const uint8_t *source_at(struct source *s, uint64_t offset, size_t n);

/* Any number of them, copied. -EBADMSG: they are not there; -ENOMEM. */
int source_copy(struct source *s, uint64_t offset, uint64_t n, uint8_t **ret);
