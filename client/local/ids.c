// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the reading of by-id/. */
#include "client/local/ids.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "client/info.h"
#include "client/public.h"
#include "proto/places.h"

#define LINK_SIZE (3 + 2 * PP_NAME_SIZE) /* "../NS/NAME" */

void ids_done(struct ids *ids)
{
	free(ids->v);
	*ids = (struct ids){ 0 };
}

static int parse_link(const char *text, struct event_id *ret)
{
	_Static_assert(PP_NAME_SIZE == 64, "the widths below");
	int end = 0;

	if (sscanf(text, "../%63[^/]/%63[^/]%n", ret->ns, ret->name, &end) != 2 || text[end] ||
	    !client_name_is_valid(ret->ns) || !client_name_is_valid(ret->name))
		return -EBADMSG;
	return 0;
}

static int read_link(int dir, const char *leaf, struct event_id *ret)
{
	char text[LINK_SIZE] = "";
	ssize_t n = readlinkat(dir, leaf, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	memset(ret, 0, sizeof(*ret));
	ret->id = strtoull(leaf, NULL, 10);
	return parse_link(text, ret);
}

int ids_read_one(const char *registry, uint64_t id, struct event_id *ret)
{
	char path[PATH_MAX], leaf[24];
	_cleanup_close_ int dir = -EBADF;
	int n = snprintf(path, sizeof(path), "%s/" PP_BY_ID, registry);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	snprintf(leaf, sizeof(leaf), "%" PRIu64, id);
	return read_link(dir, leaf, ret);
}

static int add(struct ids *ids, const struct event_id *id)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? 2 * ids->cap : 64;
		struct event_id *v = reallocarray(ids->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		ids->v = v;
		ids->cap = cap;
	}
	ids->v[ids->n++] = *id;
	return 0;
}

static int read_all(struct ids *ids, const char *registry)
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[PATH_MAX];
	struct dirent *entry;
	int n = snprintf(path, sizeof(path), "%s/" PP_BY_ID, registry);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		struct event_id id;

		/* A link that went meanwhile, or is none of ours, leads nowhere. */
		if (read_link(dirfd(d), entry->d_name, &id) >= 0 && add(ids, &id) < 0)
			return -ENOMEM;
	}
	ids->read = 1;
	return 0;
}

int ids_find(struct ids *ids, const char *registry, const char *ns, const char *name, uint64_t *ret)
{
	int r = ids->read ? 0 : read_all(ids, registry);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ids->n; i++)
		if (!strcmp(ids->v[i].name, name) && !strcmp(ids->v[i].ns, ns)) {
			*ret = ids->v[i].id;
			return 0;
		}
	return -ENOENT;
}
