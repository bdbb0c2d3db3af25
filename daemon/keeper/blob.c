// SPDX-License-Identifier: LGPL-2.1-or-later
/* Implements the table of shared bytes and their lookup. */
#include "daemon/keeper/blob.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/siphash.h"

#define BUCKETS_MIN 256

int blobs_init(struct blobs *blobs, struct memory *memory)
{
	*blobs = (struct blobs){ .memory = memory, .n_buckets = BUCKETS_MIN };
	blobs->buckets = memory_get(memory, BUCKETS_MIN * sizeof(*blobs->buckets));
	return blobs->buckets ? 0 : -ENOMEM;
}

void blobs_done(struct blobs *blobs)
{
	assert(blobs->n == 0);
	memory_put(blobs->memory, blobs->buckets);
	*blobs = (struct blobs){ 0 };
}

/* A process that chooses its paths must not be able to choose buckets. */
static uint64_t hash_of(const void *a, size_t size_a, const void *b, size_t size_b)
{
	struct siphash h;

	siphash_begin(&h, NULL);
	siphash_add(&h, a, size_a);
	siphash_add(&h, b, size_b);
	return siphash_end(&h);
}

/* Keeps at least one bucket for each blob, so that chains stay short; without memory they get
 * longer. */
static void grow(struct blobs *blobs)
{
	size_t n = blobs->n_buckets * 2;
	struct blob **buckets = memory_get(blobs->memory, n * sizeof(*buckets));

	if (!buckets)
		return;
	for (size_t i = 0; i < blobs->n_buckets; i++)
		for (struct blob *b = blobs->buckets[i], *next; b; b = next) {
			struct blob **to = &buckets[b->hash & (n - 1)];

			next = b->next;
			b->next = *to;
			*to = b;
		}
	memory_put(blobs->memory, blobs->buckets);
	blobs->buckets = buckets;
	blobs->n_buckets = n;
}

static bool is_it(const struct blob *b, uint64_t hash, enum blob_kind kind, const void *a,
		  size_t size_a, const void *c, size_t size_c)
{
	return b->hash == hash && b->kind == kind && b->size == size_a + size_c &&
	       memcmp(b->bytes, a, size_a) == 0 && memcmp(b->bytes + size_a, c, size_c) == 0;
}

struct blob *blobs_get(struct blobs *blobs, enum blob_kind kind, const void *a, size_t size_a,
		       const void *b, size_t size_b)
{
	uint64_t hash = hash_of(a, size_a, b, size_b);
	struct blob **bucket = &blobs->buckets[hash & (blobs->n_buckets - 1)], *new;

	for (struct blob *i = *bucket; i; i = i->next)
		if (is_it(i, hash, kind, a, size_a, b, size_b))
			return blob_ref(i);
	if (size_a + size_b > UINT16_MAX)
		return NULL;
	new = memory_get(blobs->memory, sizeof(*new) + size_a + size_b);
	if (!new)
		return NULL;
	new->hash = hash;
	new->refs = 1;
	new->kind = kind;
	new->size = (uint16_t)(size_a + size_b);
	memcpy(new->bytes, a, size_a);
	memcpy(new->bytes + size_a, b, size_b);
	new->next = *bucket;
	*bucket = new;
	if (++blobs->n > blobs->n_buckets)
		grow(blobs);
	return new;
}

void blobs_put(struct blobs *blobs, struct blob *b)
{
	struct blob **at;

	if (!b || --b->refs > 0)
		return;
	at = &blobs->buckets[b->hash & (blobs->n_buckets - 1)];
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	blobs->n--;
	memory_put(blobs->memory, b);
}
