// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads by-id/. */
#include "client/local/ids.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "client/info.h"
#include "client/public.h"
#include "client/rings/bpf.h"
#include "proto/places.h"

void ids_done(struct ids *ids)
{
	free(ids->v);
	*ids = (struct ids){ 0 };
}

static bool is_name(const char *text)
{
	return memchr(text, '\0', PP_NAME_SIZE) && client_name_is_valid(text);
}

/* -EBADMSG: it is none of ours. */
static int read_record(const char *pin, struct pp_name_record *ret)
{
	_cleanup_close_ int fd = client_bpf_open_pin(pin);
	uint32_t zero = 0;
	int r;

	if (fd < 0)
		return fd;
	if (!client_bpf_is_array(fd, sizeof(*ret)))
		return -EBADMSG;
	r = client_bpf_lookup(fd, &zero, ret);
	if (r < 0)
		return r;
	return ret->magic == PP_NAME_RECORD_MAGIC && ret->version == PP_NAME_RECORD_VERSION &&
			       is_name(ret->ns) && is_name(ret->name)
		       ? 0
		       : -EBADMSG;
}

static int add(struct ids *ids, const struct pp_name_record *record)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? 2 * ids->cap : 64;
		struct pp_name_record *v = reallocarray(ids->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		ids->v = v;
		ids->cap = cap;
	}
	ids->v[ids->n++] = *record;
	return 0;
}

/* Runs fn for each entry of DIR/LEAF whose name begins so; what went meanwhile has none. */
static int each(struct ids *ids, const char *dir, const char *leaf, const char *begin,
		int (*fn)(struct ids *ids, const char *dir, const char *leaf))
{
	_cleanup_closedir_ DIR *d = NULL;
	char path[PATH_MAX];
	struct dirent *entry;
	int n = snprintf(path, sizeof(path), "%s/%s", dir, leaf), r = 0;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (r >= 0 && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && !strncmp(entry->d_name, begin, strlen(begin)))
			r = fn(ids, path, entry->d_name);
	return r;
}

static int read_name(struct ids *ids, const char *dir, const char *leaf)
{
	struct pp_name_record record;
	char pin[PATH_MAX];
	int n = snprintf(pin, sizeof(pin), "%s/%s", dir, leaf);

	if (n < 0 || (size_t)n >= sizeof(pin))
		return -ENAMETOOLONG;
	return read_record(pin, &record) < 0 ? 0 : add(ids, &record);
}

static int read_event(struct ids *ids, const char *dir, const char *leaf)
{
	return each(ids, dir, leaf, PP_NAME_RECORD_LEAF, read_name);
}

static int read_all(struct ids *ids, const char *registry)
{
	int r = ids->read ? 0 : each(ids, registry, PP_BY_ID, "", read_event);

	if (r >= 0)
		ids->read = 1;
	return r;
}

int ids_by_name(struct ids *ids, const char *registry, const char *ns, const char *name,
		const struct pp_name_record **ret)
{
	int r = read_all(ids, registry);

	for (size_t i = 0; r >= 0 && i < ids->n; i++)
		if (!strcmp(ids->v[i].name, name) && !strcmp(ids->v[i].ns, ns)) {
			*ret = &ids->v[i];
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

int ids_by_id(struct ids *ids, const char *registry, uint64_t id, const struct pp_name_record **ret)
{
	int r = read_all(ids, registry);

	for (size_t i = 0; r >= 0 && i < ids->n; i++)
		if (ids->v[i].id == id) {
			*ret = &ids->v[i];
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}
