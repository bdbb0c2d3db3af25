/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table as a file that proto/sideband.h describes. */
#pragma once

#include <stdint.h>

struct table;

/*
 * Of the processes that were alive at `since` or later and began no later than `until` (0: ever).
 * *ret_fd is a sealed memfd, read-only, the caller's. busy() is called now and then, and must
 * leave the table alone.
 */
int table_emit(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	       void *context, int *ret_fd, uint64_t *ret_size);
