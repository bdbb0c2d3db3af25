/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a file, read in cached blocks. It is not mapped: another process may truncate it
 * meanwhile, which would be a SIGBUS. A pipe, which cannot be read twice, is first copied into an
 * unnamed file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SOURCE_READ_MAX 0x10000 /* at once: records have 16 bits for their size */

struct source {
	int fd;
	int copy; /* of a pipe; else -EBADF */
	uint64_t size;
	struct source_block *blocks;
	uint8_t *joined; /* bytes that span several blocks */
};

/* -EBADMSG (trace_error()), -ENOMEM, -errno. */
int source_open(struct source *s, int fd);
void source_done(struct source *s);

/* At most SOURCE_READ_MAX bytes, valid until the next call. NULL: beyond the end. */
const uint8_t *source_at(struct source *s, uint64_t offset, size_t n);

/* Copies any number of bytes. -EBADMSG: beyond the end; -ENOMEM. */
int source_copy(struct source *s, uint64_t offset, uint64_t n, uint8_t **ret);
