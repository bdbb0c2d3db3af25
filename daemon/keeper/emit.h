/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the table as the file that proto/sideband.h describes. */
#pragma once

#include <stdint.h>

struct table;

/*
 * The file has the processes that were alive at `since` or later and began no later than `until`
 * (0: ever). *ret_fd is a sealed read-only memfd; the caller owns it. busy() is called from time to
 * time and must not change the table.
 */
int table_emit(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	       void *context, int *ret_fd, uint64_t *ret_size);
