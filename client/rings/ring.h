/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One CPU's ring: its descriptor, its checked header, and access to its bytes. Knows nothing of
 * records.
 *
 * The memory behind the descriptor is untrusted and may change at any moment. `header` is a private
 * copy, checked once; later code never looks at the ring's own.
 */
#pragma once

#include "proto/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_ring {
	int fd;
	const void *map; /* NULL: a file that may shrink, which is read instead */
	size_t map_size;
	bool is_file; /* a copy; else a BPF map */
	struct pp_ring_header header;
};

/* Takes fd over, whatever the outcome. size: bytes to map, as the daemon said; 0: as the header
 * says. -EBADMSG (not a ring), -EPROTONOSUPPORT (made by a newer version), -ENOMEM. */
int client_ring_open(int fd, size_t size, struct client_ring *ret);
void client_ring_close(struct client_ring *ring);

/* Copies n bytes at offset of the ring: 0, or -EIO if they do not exist. The range must lie within
 * the sizes of the header. */
int client_ring_read(const struct client_ring *ring, size_t offset, void *buf, size_t n);

/* Loads a live word of 8 bytes (acquire); 0 if it cannot be read. */
uint64_t client_ring_load(const struct client_ring *ring, size_t member);
#define CLIENT_RING_LIVE(ring, word) \
	client_ring_load(ring, PP_RING_LIVE_OFFSET + offsetof(struct pp_ring_live, word))
#define CLIENT_RING_LIMIT(ring, word) \
	client_ring_load(ring, PP_RING_LIMIT_OFFSET + offsetof(struct pp_ring_limit, word))

/* The live state: enum pp_ring_state; unknown values count as running. */
enum pp_ring_state client_ring_state(const struct client_ring *ring);
