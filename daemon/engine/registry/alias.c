// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records of aliases, in maps beside the pins of the event whose rings they have. */
#include "daemon/engine/registry/alias.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define RECORD_MAGIC 0x7361696c612d702bULL /* "+p-alias" */
#define RECORD_VERSION 1

struct record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	uint64_t id;
	struct pp_spec spec;
};

static void leaf_of(uint64_t id, char ret[PP_NAME_SIZE])
{
	snprintf(ret, PP_NAME_SIZE, PINS_ALIAS "%" PRIu64, id);
}

static void pin_of(const char *path, uint64_t id, char ret[PINS_PATH_SIZE + PP_NAME_SIZE])
{
	char leaf[PP_NAME_SIZE];

	leaf_of(id, leaf);
	snprintf(ret, PINS_PATH_SIZE + PP_NAME_SIZE, "%s/%s", path, leaf);
}

static int write_record(int fd, uint64_t id, const struct pp_spec *spec)
{
	struct record record = {
		.magic = RECORD_MAGIC,
		.version = RECORD_VERSION,
		.size = sizeof(record),
		.id = id,
	};
	uint32_t zero = 0;

	/* Only what is the alias' own: the rest would go out of date. */
	memcpy(record.spec.ns, spec->ns, sizeof(spec->ns));
	memcpy(record.spec.name, spec->name, sizeof(spec->name));
	record.spec.owner = spec->owner;
	record.spec.group = spec->group;
	record.spec.mode = spec->mode;
	record.spec.creator = spec->creator;
	record.spec.flags = spec->flags & PP_EVENT_CONFIGURED;
	return bpf_map_update_elem(fd, &zero, &record, BPF_ANY) < 0 ? -errno : 0;
}

int alias_create(const char *path, uint64_t id, const struct pp_spec *spec)
{
	char pin[PINS_PATH_SIZE + PP_NAME_SIZE];
	_cleanup_close_ int fd = -EBADF;
	int r;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_alias", 4, sizeof(struct record), 1, NULL);
	if (fd < 0)
		return fd;
	r = write_record(fd, id, spec);
	if (r < 0)
		return r;
	pin_of(path, id, pin);
	return bpf_obj_pin(fd, pin) < 0 ? -errno : 0;
}

int alias_update(const char *path, const struct alias *a)
{
	_cleanup_close_ int fd = -EBADF;
	char leaf[PP_NAME_SIZE];

	leaf_of(a->id, leaf);
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : write_record(fd, a->id, &a->spec);
}

int alias_remove(const char *path, uint64_t id)
{
	char pin[PINS_PATH_SIZE + PP_NAME_SIZE];

	pin_of(path, id, pin);
	return unlink(pin) < 0 ? -errno : 0;
}

static int check_names(const struct pp_spec *spec)
{
	if (strnlen(spec->ns, PP_NAME_SIZE) == PP_NAME_SIZE || !pp_name_is_valid(spec->ns) ||
	    !strcmp(spec->ns, PP_BY_ID) || strnlen(spec->name, PP_NAME_SIZE) == PP_NAME_SIZE ||
	    !pp_name_is_valid(spec->name))
		return -EBADMSG;
	return 0;
}

static int read_record(int fd, uint64_t id, struct record *ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), zero = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(*ret))
		return -EBADMSG;
	if (bpf_map_lookup_elem(fd, &zero, ret) < 0)
		return -errno;
	if (ret->magic != RECORD_MAGIC || ret->version != RECORD_VERSION ||
	    ret->size != sizeof(*ret) || ret->id != id)
		return -EBADMSG;
	return check_names(&ret->spec);
}

int alias_read(const char *path, uint64_t id, struct alias *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char leaf[PP_NAME_SIZE];
	struct record record;
	int r;

	leaf_of(id, leaf);
	fd = pins_get(path, leaf);
	if (fd < 0)
		return fd;
	r = read_record(fd, id, &record);
	if (r < 0)
		return r;
	*ret = (struct alias){ .id = id, .spec = record.spec };
	snprintf(ret->path, sizeof(ret->path), "%s/%s", record.spec.ns, record.spec.name);
	return 0;
}

/* ── all of an event ────────────────────────────────────────────────────────────────────── */

struct list {
	struct alias *aliases;
	size_t n, room;
};

static int list_add(struct list *l, const struct alias *a)
{
	if (l->n == l->room) {
		size_t room = MAX(l->room * 2, (size_t)4);
		struct alias *more = reallocarray(l->aliases, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->aliases = more;
		l->room = room;
	}
	l->aliases[l->n++] = *a;
	return 0;
}

static int list_leaf(const char *path, const char *leaf, void *userdata)
{
	struct alias a;
	uint64_t id;
	int r;

	if (strncmp(leaf, PINS_ALIAS, strlen(PINS_ALIAS)) != 0 ||
	    pp_parse_u64(leaf + strlen(PINS_ALIAS), &id) < 0)
		return 0;
	r = alias_read(path, id, &a);
	/* For want of memory or descriptors nothing may be said to be gone. */
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		log_warning("%s/%s cannot be understood (%s); left alone, and its name is none",
			    path, leaf, strerror(-r));
		return 0;
	}
	return list_add(userdata, &a);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct alias *)a)->id, y = ((const struct alias *)b)->id;

	return x < y ? -1 : x > y;
}

int alias_list(const char *path, struct alias **ret, size_t *ret_n)
{
	struct list l = {};
	int r = pins_foreach_leaf(path, list_leaf, &l);

	if (r < 0) {
		free(l.aliases);
		return r;
	}
	if (l.n)
		qsort(l.aliases, l.n, sizeof(*l.aliases), by_id);
	*ret = l.aliases;
	*ret_n = l.n;
	return 0;
}

void alias_view(const struct alias *a, struct pp_event *e)
{
	e->origin = pp_event_origin(e);
	e->shares = e->id;
	e->id = a->id;
	e->memory = 0;
	memcpy(e->spec.ns, a->spec.ns, sizeof(e->spec.ns));
	memcpy(e->spec.name, a->spec.name, sizeof(e->spec.name));
	e->spec.owner = a->spec.owner;
	e->spec.group = a->spec.group;
	e->spec.mode = a->spec.mode;
	e->spec.creator = a->spec.creator;
	e->spec.flags = (e->spec.flags & ~PP_EVENT_CONFIGURED) | a->spec.flags;
}
