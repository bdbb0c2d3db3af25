/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The catalog of an event of several sources, as a private checked copy, and decoding of records
 * with it. Knows only a ring's header. */
#pragma once

#include "client/perfpersist.h"
#include "proto/catalog.h"

#include <stddef.h>

struct client_catalog {
	void *bytes; /* NULL: no catalog */
	uint32_t n;  /* sources */
	uint64_t event_id;
	int fd; /* only if there is one */
};

/*
 * Copies the catalog behind fd, and takes fd over, whatever the outcome: it is kept to be handed on, and not
 * read again. size: its bytes, as the daemon said; 0: as the catalog says. -EBADMSG (not a catalog),
 * -EPROTONOSUPPORT (made by a newer version), -ENOMEM.
 */
int client_catalog_open(int fd, size_t size, struct client_catalog *ret);
void client_catalog_done(struct client_catalog *c);

/* Source i < n, for the public interface. */
void client_catalog_source(const struct client_catalog *c, uint32_t i,
			   struct perfpersist_source *ret);

/* Decodes a whole record of a ring with that header (both header and catalog are checked); ret->cpu
 * is untouched. -EBADMSG: as sample_decode(), or there is no such source. */
int client_decode(const struct pp_ring_header *h, const struct client_catalog *c,
		  const void *record, size_t size, struct perfpersist_sample *ret);
