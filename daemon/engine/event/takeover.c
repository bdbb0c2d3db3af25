// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes over an earlier version's registry. See takeover.h. */
#include "daemon/engine/event/takeover.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/event/event.h"
#include "daemon/engine/registry/name.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

#define ALIAS_LEAF "alias-"
#define ALIAS_MAGIC 0x7361696c612d702bULL /* "+p-alias" */

/* As that version wrote it. */
struct alias {
	uint64_t magic;
	uint32_t version; /* 1 */
	uint32_t size;
	uint64_t id;
	struct pp_spec spec; /* the fields that a name's record also has */
};

static int read_alias(int fd, uint64_t id, struct alias *ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), zero = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(*ret))
		return -EBADMSG;
	if (bpf_map_lookup_elem(fd, &zero, ret) < 0)
		return -errno;
	return ret->magic == ALIAS_MAGIC && ret->version == 1 && ret->id == id ? 0 : -EBADMSG;
}

/* The new record first: a name always has one. */
static int take_alias(const char *path, const char *leaf, void *userdata _unused_)
{
	_cleanup_close_ int fd = -EBADF;
	struct alias alias;
	uint64_t id;
	int r;

	if (strncmp(leaf, ALIAS_LEAF, strlen(ALIAS_LEAF)) != 0 ||
	    pp_parse_u64(leaf + strlen(ALIAS_LEAF), &id) < 0)
		return 0;
	fd = pins_get(path, leaf);
	r = fd < 0 ? fd : read_alias(fd, id, &alias);
	if (r == -EBADMSG || r == -EACCES) {
		log_warning("The name in %s/%s is malformed; it is left alone and not used.", path,
			    leaf);
		return 0;
	}
	if (r >= 0)
		r = name_exists(path, id);
	if (r == 0)
		r = name_create(path, id, &alias.spec);
	if (r >= 0)
		pins_drop(path, leaf);
	return r < 0 ? r : 0;
}

/*
 * Takes over the directory's own name. It may have replaced an alias with a record, in a version
 * that died before it noted the change.
 */
static int take_first(const char *path, const struct pp_event *event)
{
	_cleanup_free_ struct name *names = NULL;
	size_t n = 0;
	int r = name_list(path, &names, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i].path, path))
			return 0;
	return name_create(path, event->id, &event->spec);
}

static int take_event(const char *path, void *userdata _unused_)
{
	struct pp_event event;
	int r = event_read(path, &event);

	if (r < 0)
		return event_not_understood(path, path, r);
	r = pins_foreach_leaf(path, take_alias, NULL);
	if (r >= 0)
		r = take_first(path, &event);
	if (r >= 0)
		r = pins_move(path, event.origin);
	/* Only these are faults of the event, which another start would find again. */
	if (r < 0 && r != -EBADMSG && r != -EACCES && r != -EEXIST)
		return r;
	if (r < 0)
		log_error("Cannot take over event %s of an earlier version: %s; it is left alone, "
			  "and the engine's next start tries again.",
			  path, strerror(-r));
	return 0;
}

int takeover(void)
{
	return pins_foreach_old(take_event, NULL);
}
