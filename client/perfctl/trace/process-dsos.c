// SPDX-License-Identifier: LGPL-2.1-or-later
/* Looked up by a hash of path, build id, device and inode. Announcing a build id adds an entry by
 * the path alone, which points to the one with the build id. */
#include "client/perfctl/trace/process-dsos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/macro.h"
#include "proto/siphash.h"

struct dso_entry {
	struct dso dso;
	struct dso_entry *announced; /* points to the entry with the announced build id */
	int64_t next;		     /* next entry with the same hash; -1: none */
};

static uint64_t key_of(const char *path, const uint8_t *build_id, size_t size, uint64_t device,
		       uint64_t inode)
{
	struct siphash h;

	siphash_begin(&h, NULL);
	siphash_add(&h, path, strlen(path) + 1);
	siphash_add(&h, build_id, size);
	siphash_add(&h, &device, sizeof(device));
	siphash_add(&h, &inode, sizeof(inode));
	return siphash_end(&h);
}

static struct dso_entry *find(struct dsos *d, const char *path, const uint8_t *build_id,
			      size_t size, uint64_t device, uint64_t inode)
{
	int64_t i = keytable_get(&d->by_key, key_of(path, build_id, size, device, inode));

	while (i >= 0) {
		struct dso_entry *e = d->entries[i];

		if (e->dso.build_id_size == size && e->dso.device == device &&
		    e->dso.inode == inode && !strcmp(e->dso.path, path) &&
		    (size == 0 || !memcmp(e->dso.build_id, build_id, size)))
			return e;
		i = e->next;
	}
	return NULL;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (path[0] == '[' || !strncmp(path, "//", 2) || !slash || !slash[1])
		return path;
	return slash + 1;
}

static int add(struct dsos *d, const char *path, const uint8_t *build_id, size_t size,
	       uint64_t device, uint64_t inode, struct dso_entry **ret)
{
	uint64_t key = key_of(path, build_id, size, device, inode);
	struct dso_entry *e;
	int r;

	if (!GROW(d->entries, d->n))
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->dso.path = strdup(path);
	e->next = keytable_get(&d->by_key, key);
	r = e->dso.path ? keytable_set(&d->by_key, key, (uint32_t)d->n) : -ENOMEM;
	if (r < 0) {
		free(e->dso.path);
		free(e);
		return r;
	}
	e->dso.name = name_of(e->dso.path);
	if (size)
		memcpy(e->dso.build_id, build_id, size);
	e->dso.build_id_size = size;
	e->dso.device = device;
	e->dso.inode = inode;
	e->dso.index = (uint32_t)d->n;
	d->entries[d->n++] = e;
	*ret = e;
	return 0;
}

/* Anonymous memory and deleted files share names, and cannot be read. */
static bool can_be_opened(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path);

	return path[0] == '/' &&
	       (n < strlen(deleted) || strcmp(path + n - strlen(deleted), deleted));
}

int dsos_get(struct dsos *d, const char *path, const uint8_t *build_id, size_t size,
	     uint64_t device, uint64_t inode, struct dso **ret)
{
	struct dso_entry *e;
	int r;

	size = build_id ? MIN(size, (size_t)BUILD_ID_SIZE_MAX) : 0;
	if (!size) {
		e = find(d, path, NULL, 0, 0, 0);
		if (e && e->announced) {
			*ret = &e->announced->dso;
			return 0;
		}
	}
	if (size || !inode || !can_be_opened(path))
		device = inode = 0;
	e = find(d, path, build_id, size, device, inode);
	if (!e) {
		r = add(d, path, build_id, size, device, inode, &e);
		if (r < 0)
			return r;
	}
	*ret = &e->dso;
	return 0;
}

int dsos_announce(struct dsos *d, const char *path, const uint8_t *build_id, size_t size)
{
	struct dso_entry *plain = find(d, path, NULL, 0, 0, 0), *e;
	int r;

	size = MIN(size, (size_t)BUILD_ID_SIZE_MAX);
	if (size == 0)
		return 0;
	e = find(d, path, build_id, size, 0, 0);
	if (!e) {
		r = add(d, path, build_id, size, 0, 0, &e);
		if (r < 0)
			return r;
	}
	if (!plain) {
		r = add(d, path, NULL, 0, 0, 0, &plain);
		if (r < 0)
			return r;
	}
	plain->announced = e;
	return 0;
}

struct dso *dsos_at(struct dsos *d, size_t i)
{
	return i < d->n ? &d->entries[i]->dso : NULL;
}

void dsos_done(struct dsos *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->entries[i]->dso.path);
		free(d->entries[i]);
	}
	free(d->entries);
	keytable_done(&d->by_key);
	*d = (struct dsos){ 0 };
}
