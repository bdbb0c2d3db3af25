// SPDX-License-Identifier: LGPL-2.1-or-later
/* The records of names, in maps beside an event's pins. See name.h. */
#include "daemon/engine/registry/name.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/name-record.h"
#include "proto/places.h"

static void leaf_of(uint64_t id, char ret[PP_NAME_SIZE])
{
	snprintf(ret, PP_NAME_SIZE, PP_NAME_RECORD_LEAF "%" PRIu64, id);
}

static void pin_of(const char *path, uint64_t id, char ret[PINS_PATH_SIZE + PP_NAME_SIZE])
{
	char leaf[PP_NAME_SIZE];

	leaf_of(id, leaf);
	snprintf(ret, PINS_PATH_SIZE + PP_NAME_SIZE, "%s/%s", path, leaf);
}

static int write_record(int fd, uint64_t id, const struct pp_spec *spec)
{
	struct pp_name_record record = {
		.magic = PP_NAME_RECORD_MAGIC,
		.version = PP_NAME_RECORD_VERSION,
		.size = sizeof(record),
		.id = id,
		.owner = spec->owner,
		.group = spec->group,
		.mode = spec->mode,
		.creator = spec->creator,
		.flags = spec->flags & PP_EVENT_CONFIGURED,
	};
	uint32_t zero = 0;

	memcpy(record.ns, spec->ns, sizeof(record.ns));
	memcpy(record.name, spec->name, sizeof(record.name));
	return bpf_map_update_elem(fd, &zero, &record, BPF_ANY) < 0 ? -errno : 0;
}

int name_create(const char *path, uint64_t id, const struct pp_spec *spec)
{
	char pin[PINS_PATH_SIZE + PP_NAME_SIZE];
	_cleanup_close_ int fd = -EBADF;
	int r;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_name", 4, sizeof(struct pp_name_record), 1,
			    NULL);
	if (fd < 0)
		return fd;
	r = write_record(fd, id, spec);
	if (r < 0)
		return r;
	pin_of(path, id, pin);
	return bpf_obj_pin(fd, pin) < 0 ? -errno : 0;
}

int name_update(const char *path, const struct name *name)
{
	_cleanup_close_ int fd = -EBADF;
	char leaf[PP_NAME_SIZE];

	leaf_of(name->id, leaf);
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : write_record(fd, name->id, &name->spec);
}

int name_remove(const char *path, uint64_t id)
{
	char pin[PINS_PATH_SIZE + PP_NAME_SIZE];

	pin_of(path, id, pin);
	return unlink(pin) < 0 ? -errno : 0;
}

int name_exists(const char *path, uint64_t id)
{
	char pin[PINS_PATH_SIZE + PP_NAME_SIZE];
	struct stat st;

	pin_of(path, id, pin);
	if (lstat(pin, &st) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

static bool name_is_good(const char *text)
{
	return strnlen(text, PP_NAME_SIZE) < PP_NAME_SIZE && pp_name_is_valid(text);
}

static int read_record(int fd, uint64_t id, struct pp_name_record *ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), zero = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(*ret))
		return -EBADMSG;
	if (bpf_map_lookup_elem(fd, &zero, ret) < 0)
		return -errno;
	if (ret->magic != PP_NAME_RECORD_MAGIC || ret->version != PP_NAME_RECORD_VERSION ||
	    ret->size != sizeof(*ret) || ret->id != id || !name_is_good(ret->ns) ||
	    !strcmp(ret->ns, PP_BY_ID) || !name_is_good(ret->name))
		return -EBADMSG;
	return 0;
}

static int read_name(const char *path, uint64_t id, struct name *ret)
{
	_cleanup_close_ int fd = -EBADF;
	struct pp_name_record record;
	char leaf[PP_NAME_SIZE];
	int r;

	leaf_of(id, leaf);
	fd = pins_get(path, leaf);
	if (fd < 0)
		return fd;
	r = read_record(fd, id, &record);
	if (r < 0)
		return r;
	*ret = (struct name){
		.id = id,
		.spec.owner = record.owner,
		.spec.group = record.group,
		.spec.mode = record.mode,
		.spec.creator = record.creator,
		.spec.flags = record.flags,
	};
	memcpy(ret->spec.ns, record.ns, sizeof(record.ns));
	memcpy(ret->spec.name, record.name, sizeof(record.name));
	snprintf(ret->path, sizeof(ret->path), "%s/%s", record.ns, record.name);
	return 0;
}

/* ── all names of an event ──────────────────────────────────────────────────────────────── */

struct list {
	struct name *names;
	size_t n, room;
	size_t left_out;
};

static int list_add(struct list *l, const struct name *name)
{
	if (l->n == l->room) {
		size_t room = MAX(l->room * 2, (size_t)4);
		struct name *more = reallocarray(l->names, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->names = more;
		l->room = room;
	}
	l->names[l->n++] = *name;
	return 0;
}

static int list_leaf(const char *path, const char *leaf, void *userdata)
{
	struct list *l = userdata;
	struct name name;
	uint64_t id;
	int r;

	if (strncmp(leaf, PP_NAME_RECORD_LEAF, strlen(PP_NAME_RECORD_LEAF)) != 0)
		return 0;
	r = pp_parse_u64(leaf + strlen(PP_NAME_RECORD_LEAF), &id) < 0 ? -EBADMSG
								      : read_name(path, id, &name);
	/* Only the record's own fault makes it no name. After any other, it would look deleted. */
	if (r < 0 && r != -EBADMSG && r != -EACCES)
		return r;
	if (r < 0) {
		log_warning("Cannot read the name in %s/%s (%s); it is left alone and not used.",
			    path, leaf, strerror(-r));
		l->left_out++;
		return 0;
	}
	return list_add(l, &name);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct name *)a)->id, y = ((const struct name *)b)->id;

	return x < y ? -1 : x > y;
}

int name_list(const char *path, struct name **ret, size_t *ret_n)
{
	struct list l = {};
	int r = pins_foreach_leaf(path, list_leaf, &l);

	if (r < 0) {
		free(l.names);
		return r;
	}
	if (l.n)
		qsort(l.names, l.n, sizeof(*l.names), by_id);
	*ret = l.names;
	*ret_n = l.n;
	return 0;
}

int name_left_out(const char *path)
{
	struct list l = {};
	int r = pins_foreach_leaf(path, list_leaf, &l);

	free(l.names);
	return r < 0 ? r : l.left_out > 0;
}

void name_view(const struct name *name, struct pp_event *e)
{
	const struct pp_spec *spec = &name->spec;

	e->id = name->id;
	memcpy(e->spec.ns, spec->ns, sizeof(e->spec.ns));
	memcpy(e->spec.name, spec->name, sizeof(e->spec.name));
	e->spec.owner = spec->owner;
	e->spec.group = spec->group;
	e->spec.mode = spec->mode;
	e->spec.creator = spec->creator;
	e->spec.flags = (e->spec.flags & ~PP_EVENT_CONFIGURED) | spec->flags;
}
