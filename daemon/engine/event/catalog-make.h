/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the catalog of an event of several sources (proto/catalog.h), and reads it again. */
#pragma once

#include <stdint.h>

#include "daemon/engine/sources/sources.h"

/* The frozen map, exactly as large as needed. *ret_fd is the caller's. -errno. */
int catalog_create(const struct sources *s, uint64_t event_id, int *ret_fd, uint32_t *ret_size);

/* A private, checked copy of the catalog in a map; *ret is for free(3). -EBADMSG, -errno. */
int catalog_read(int fd, uint32_t size, void **ret);

/* The records of its n sources; they point into the catalog. */
void catalog_records(const void *catalog, struct source_record *ret, size_t n);
