/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared bytes: mapped files and sets of namespaces, of which many threads have the same. Each is
 * stored once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/keeper/memory.h"

enum blob_kind {
	BLOB_FILE = 1,	 /* union pp_file_id, path with its NUL */
	BLOB_NAMESPACES, /* u64 number; u64 device, inode each */
};

struct blob {
	struct blob *next;
	uint64_t hash;
	uint32_t refs;
	uint16_t size;
	uint8_t kind;
	uint8_t bytes[];
};

struct blobs {
	struct memory *memory;
	struct blob **buckets;
	size_t n_buckets, n;
};

int blobs_init(struct blobs *blobs, struct memory *memory);
/* All references must have been given back. */
void blobs_done(struct blobs *blobs);

/* Returns a reference, which the caller owns, to the blob with these bytes, given in two parts.
 * NULL: no memory. */
struct blob *blobs_get(struct blobs *blobs, enum blob_kind kind, const void *a, size_t size_a,
		       const void *b, size_t size_b);
static inline struct blob *blob_ref(struct blob *b)
{
	b->refs++;
	return b;
}
void blobs_put(struct blobs *blobs, struct blob *b);
