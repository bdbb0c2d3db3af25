// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open addressing, at most half full. */
#include "client/perfdata/path-set.h"

#include <string.h>

#include "proto/siphash.h"

static uint64_t hash_of(const char *path, uint64_t device, uint64_t inode)
{
	struct siphash h;

	siphash_begin(&h, NULL);
	siphash_add(&h, &device, sizeof(device));
	siphash_add(&h, &inode, sizeof(inode));
	siphash_add(&h, path, strlen(path));
	return siphash_end(&h);
}

static struct path_entry *entry_at(const struct path_set *s, size_t at)
{
	return (struct path_entry *)(void *)(s->entries.bytes + at);
}

/* The entry's place, or the free one for it. */
static size_t *find(const struct path_set *s, uint64_t hash, const char *path, uint64_t device,
		    uint64_t inode)
{
	for (size_t i = (size_t)hash;; i++) {
		size_t *place = &s->places[i & (s->cap - 1)];
		const struct path_entry *e = *place ? entry_at(s, *place - 1) : NULL;

		if (!e || (e->hash == hash && e->device == device && e->inode == inode &&
			   !strcmp(e->path, path)))
			return place;
	}
}

struct path_entry *path_set_find(const struct path_set *s, const char *path, uint64_t device,
				 uint64_t inode)
{
	size_t *place = s->cap ? find(s, hash_of(path, device, inode), path, device, inode) : NULL;

	return place && *place ? entry_at(s, *place - 1) : NULL;
}

static bool grow(struct path_set *s)
{
	struct path_set larger = *s;
	struct path_entry *e = NULL;

	if (2 * (s->n + 1) <= s->cap)
		return true;
	larger.cap = s->cap ? 2 * s->cap : 256;
	larger.places = calloc(larger.cap, sizeof(*larger.places));
	if (!larger.places)
		return false;
	while ((e = path_set_next(s, e)))
		*find(&larger, e->hash, e->path, e->device, e->inode) =
			(size_t)((uint8_t *)e - s->entries.bytes) + 1;
	free(s->places);
	*s = larger;
	return true;
}

struct path_entry *path_set_add(struct path_set *s, const char *path, uint64_t device,
				uint64_t inode)
{
	size_t length = strlen(path), at = s->entries.n;
	struct path_entry e = {
		.hash = hash_of(path, device, inode),
		.device = device,
		.inode = inode,
		.size = ALIGN_TO(sizeof(e) + length + 1, sizeof(uint64_t)),
	};

	if (!grow(s))
		s->entries.failed = true;
	blob_put(&s->entries, &e, sizeof(e));
	blob_put(&s->entries, path, length);
	blob_fill(&s->entries, e.size - sizeof(e) - length);
	if (s->entries.failed)
		return NULL;
	*find(s, e.hash, path, device, inode) = at + 1;
	s->n++;
	return entry_at(s, at);
}

struct path_entry *path_set_next(const struct path_set *s, const struct path_entry *e)
{
	size_t at = e ? (size_t)((const uint8_t *)e - s->entries.bytes) + e->size : 0;

	return at < s->entries.n ? entry_at(s, at) : NULL;
}

void path_set_done(struct path_set *s)
{
	blob_done(&s->entries);
	free(s->places);
	*s = (struct path_set){};
}
