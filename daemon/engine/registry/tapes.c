// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rings that triggers have turned. See tapes.h. */
#include "daemon/engine/registry/tapes.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/log.h"
#include "proto/macro.h"

int tapes_mark(const char *path, const char *leaf, const struct pp_fired *by)
{
	_cleanup_close_ int fd = -EBADF;
	uint32_t zero = 0;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_fired", 4, sizeof(*by), 1, NULL);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, by, BPF_ANY) < 0)
		return -errno;
	return pins_put(path, fd, leaf, 0, 0, 0600);
}

int tapes_mark_fired(const char *path, const struct pp_fired *by)
{
	int r = 0;

	pins_drop(path, PINS_KEPT); /* of a firing before, which was not carried out */
	if (by->action == PP_ACTION_FREEZE)
		r = tapes_mark(path, PINS_KEPT, by);
	return r < 0 ? r : tapes_mark(path, PINS_FIRED, by);
}

int tapes_read_mark(const char *path, const char *leaf, struct pp_fired *ret)
{
	_cleanup_close_ int fd = pins_get(path, leaf);
	uint32_t zero = 0;

	if (fd < 0)
		return fd;
	return bpf_map_lookup_elem(fd, &zero, ret) < 0 ? -errno : 0;
}

static int read_at(const char *path, uint64_t id, struct tape *ret)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	int r;

	if (meta < 0)
		return meta;
	*ret = (struct tape){ .id = id };
	r = meta_read(meta, &ret->event);
	return r < 0 ? r : tapes_read_mark(path, PINS_FIRED, &ret->by);
}

int tapes_read(uint64_t id, struct tape *ret)
{
	char path[PINS_PATH_SIZE];

	pins_tape_path(id, path);
	return read_at(path, id, ret);
}

struct each {
	int (*fn)(const struct tape *tape, void *userdata);
	void *userdata;
};

static int each_tape(const char *path, uint64_t id, void *userdata)
{
	const struct each *each = userdata;
	struct tape tape;
	int r = read_at(path, id, &tape);

	if (r >= 0)
		return each->fn(&tape, each->userdata);
	if (!meta_is_strange(r))
		return r;
	log_warning(
		"Cannot read the tape %s (%s); it is left alone; remove it from the registry if "
		"you do not need it.",
		path, strerror(-r));
	return 0;
}

int tapes_foreach(int (*fn)(const struct tape *tape, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };

	return pins_foreach_tape(each_tape, &each);
}

int tapes_release(uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r = pins_release_tape(id);

	if (r < 0)
		return r;
	pins_orphans_path(id, path);
	orphans_bury(path);
	orphans_hurry();
	return reaper_kick();
}
