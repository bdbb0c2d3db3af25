/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The catalog of an event of several sources, as a private checked copy, and the decoding of
 * records by it. Knows nothing of rings but their header.
 */
#pragma once

#include "client/perfpersist.h"
#include "proto/catalog.h"

#include <stddef.h>

struct client_catalog {
	void *bytes; /* NULL: there is none */
	uint32_t n;  /* sources */
	uint64_t event_id;
};

/*
 * Copies the catalog behind fd, which it takes over, whatever the outcome. size: bytes of it, as
 * the daemon said; 0: as it says itself. -EBADMSG (not a catalog), -EPROTONOSUPPORT (of a newer
 * version), -ENOMEM.
 */
int client_catalog_open(int fd, size_t size, struct client_catalog *ret);
void client_catalog_done(struct client_catalog *c);

/* Source i < n, for who asks from outside. */
void client_catalog_source(const struct client_catalog *c, uint32_t i,
			   struct perfpersist_source *ret);

/*
 * Decodes a whole record of a ring with that header (checked, as the catalog); ret->cpu is
 * untouched. -EBADMSG: as sample_decode(), or there is no such source.
 */
int client_decode(const struct pp_ring_header *h, const struct client_catalog *c,
		  const void *record, size_t size, struct perfpersist_sample *ret);
