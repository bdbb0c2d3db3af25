/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the table's memory, to the byte. Knows nothing of its contents. */
#pragma once

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MEMORY_MAX_DEFAULT (64UL << 20)

struct memory {
	uint64_t used, max;
};

/* Bytes of one allocation, with the allocator's own overhead. */
static inline size_t memory_of(void *p)
{
	return malloc_usable_size(p) + sizeof(size_t);
}

/* Zeroed; NULL: no memory. Never refuses for the limit's sake: limit.c makes room. */
static inline void *memory_get(struct memory *m, size_t size)
{
	void *p = calloc(1, size);

	if (p)
		m->used += memory_of(p);
	return p;
}

static inline void memory_put(struct memory *m, void *p)
{
	if (!p)
		return;
	m->used -= memory_of(p);
	free(p);
}
