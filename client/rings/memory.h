/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for copies of rings, and the copying. The first touch of each page costs more than the
 * copy itself; so memory comes in huge pages if the machine has them, we never zero it, and it is
 * kept for the next snapshot of this process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* At least size bytes, page aligned. *ret_size: the size to give back; *ret_fresh: its pages are
 * not populated yet. NULL: out of memory. */
void *client_memory_get(size_t size, size_t *ret_size, bool *ret_fresh);
void client_memory_put(void *memory, size_t size);

/* Populates the pages of [begin, end) at once, if the kernel can. */
void client_memory_touch(void *begin, void *end);

/* memcpy(3) that, for large copies, leaves the caches to others. */
void client_memory_copy(void *to, const void *from, size_t n);
