/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for copies of rings, and the copying. What costs is the first touch of each page, more
 * than the copy itself; so memory comes in huge pages where the machine has them, is never
 * zeroed by us, and is kept for the next snapshot of this process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * At least size bytes, page aligned; *ret_size is what to give back, *ret_fresh whether its
 * pages are still to come. NULL: out of memory.
 */
void *client_memory_get(size_t size, size_t *ret_size, bool *ret_fresh);
void client_memory_put(void *memory, size_t size);

/* Gives pages to [begin, end) at once, as far as that goes. */
void client_memory_touch(void *begin, void *end);

/* memcpy(3), which for large copies leaves the caches to those who need them. */
void client_memory_copy(void *to, const void *from, size_t n);
