/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes of which many want the same: files that are mapped, sets of namespaces. Each is there once.
 */
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
/* All of them must have been given back. */
void blobs_done(struct blobs *blobs);

/* The one with these bytes, which come in two parts: a reference, the caller's. NULL: no memory. */
struct blob *blobs_get(struct blobs *blobs, enum blob_kind kind, const void *a, size_t size_a,
		       const void *b, size_t size_b);
static inline struct blob *blob_ref(struct blob *b)
{
	b->refs++;
	return b;
}
void blobs_put(struct blobs *blobs, struct blob *b);
