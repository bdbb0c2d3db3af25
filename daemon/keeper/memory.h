/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the table takes, to the byte. Knows nothing of what is kept in it. */
#pragma once

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MEMORY_MAX_DEFAULT (64UL << 20)

struct memory {
	uint64_t used, max;
};

/* Of one allocation, with what the allocator itself needs for it. */
static inline size_t memory_of(void *p)
{
	return malloc_usable_size(p) + sizeof(size_t);
}

/* Zeroed; NULL if there is none. Nothing is refused for the limit's sake: that is for who can make
 * room (limit.h). */
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
