// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registry in bpffs: adds, replaces, finds and removes events. See pins.h. */
#include "daemon/engine/registry/pins.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "daemon/engine/registry/pins-internal.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/name-record.h"
#include "proto/places.h"

#define LAST_ID "+last-id"

int pins_open(const char *registry)
{
	struct statfs fs;
	int r;

	if (mkdir(registry, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (statfs(registry, &fs) < 0)
		return -errno;
	if ((unsigned long)fs.f_type != BPF_FS_MAGIC &&
	    mount("bpf", registry, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return -errno;
	if (chdir(registry) < 0)
		return -errno;
	/* All names lead through by-id/, and users who may not list it can still guess ids: so
	 * nothing visible in it may tell names. An earlier version had symlinks that did. */
	if (mkdir(PP_BY_ID, 0700) < 0 && errno != EEXIST)
		return -errno;
	r = pins_drop_old_ids();
	if (r < 0)
		return r;
	return chmod(PP_BY_ID, 0711) < 0 ? -errno : 0;
}

int pins_join(char ret[PINS_PATH_SIZE], const char *dir, const char *leaf)
{
	return snprintf(ret, PINS_PATH_SIZE, "%s/%s", dir, leaf) >= PINS_PATH_SIZE ? -ENAMETOOLONG
										   : 0;
}

int pins_get(const char *path, const char *leaf)
{
	char pin[PINS_PATH_SIZE];

	return pins_join(pin, path, leaf) < 0 ? -ENAMETOOLONG : bpf_obj_get(pin);
}

int pins_get_to_read(const char *path, const char *leaf)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = BPF_F_RDONLY);
	char pin[PINS_PATH_SIZE];

	return pins_join(pin, path, leaf) < 0 ? -ENAMETOOLONG : bpf_obj_get_opts(pin, &opts);
}

/* ── ids ────────────────────────────────────────────────────────────────────────────────── */

static int open_last_id(void)
{
	_cleanup_close_ int fd = bpf_obj_get(LAST_ID);

	if (fd >= 0)
		return TAKE_FD(fd);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_last_id", 4, sizeof(uint64_t), 1, NULL);
	if (fd < 0)
		return fd;
	if (bpf_obj_pin(fd, LAST_ID) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/*
 * Ids count up from the time of the first one in microseconds, so that they also differ from those
 * of an earlier boot, whose saved rings may still exist.
 */
int pins_next_id(uint64_t *ret)
{
	_cleanup_close_ int fd = open_last_id();
	uint32_t zero = 0;
	uint64_t id;

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &id) < 0)
		return -errno;
	if (id == 0)
		id = pp_clock_ns(CLOCK_REALTIME) / 1000;
	id++;
	if (bpf_map_update_elem(fd, &zero, &id, BPF_ANY) < 0)
		return -errno;
	*ret = id;
	return 0;
}

void pins_event(uint64_t id, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, "%s/%" PRIu64, PP_BY_ID, id);
}

/* ── making ─────────────────────────────────────────────────────────────────────────────── */

int pins_begin(const struct pp_spec *spec, struct pins_draft *ret)
{
	struct pins_draft d = { .group = spec->group, .mode = spec->mode };

	for (unsigned n = 0; n < 1000000; n++) {
		snprintf(d.path, sizeof(d.path), NEW_PREFIX "%u", n);
		if (mkdir(d.path, 0700) == 0) {
			*ret = d;
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int pins_add(struct pins_draft *d, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode)
{
	char path[PINS_PATH_SIZE];

	if (pins_join(path, d->path, leaf) < 0)
		return -ENAMETOOLONG;
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	/* The mode first: chmod of another user's file needs one more capability. */
	if (chmod(path, mode) < 0 || chown(path, owner, group) < 0)
		return -errno;
	return 0;
}

int pins_own(const char *leaf, uid_t owner, mode_t mode)
{
	struct stat st;

	if (stat(leaf, &st) < 0)
		return -errno;
	if (st.st_uid == 0 && chmod(leaf, mode) < 0) /* later this needs CAP_FOWNER */
		return -errno;
	return chown(leaf, owner, 0) < 0 ? -errno : 0;
}

int pins_put(const char *path, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode)
{
	struct pins_draft here = {};
	char spare[PINS_PATH_SIZE], pin[PINS_PATH_SIZE];
	int r;

	snprintf(here.path, sizeof(here.path), "%s", path);
	if (pins_join(spare, path, SPARE_PIN) < 0 || pins_join(pin, path, leaf) < 0)
		return -ENAMETOOLONG;
	unlink(spare);
	r = pins_add(&here, fd, SPARE_PIN, owner, group, mode);
	if (r >= 0 && rename(spare, pin) < 0)
		r = -errno;
	if (r < 0)
		unlink(spare);
	return r;
}

int pins_commit(struct pins_draft *d, const struct pp_spec *spec, uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r;

	pins_event(id, path);
	r = pins_grant_directory(d->path, d->group, d->mode);
	if (r >= 0 && renameat2(AT_FDCWD, d->path, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* Now it is an event. If the engine dies here recovery makes the link from the name's
	 * record. */
	r = pins_link(spec, path);
	if (r < 0) {
		rename(path, d->path);
		return r;
	}
	d->path[0] = 0;
	return 0;
}

static void draft_done(struct pins_draft *d, int r)
{
	if (r < 0)
		log_error("Cannot remove the draft %s from the registry: %s; the engine's next "
			  "start tries again.",
			  d->path, strerror(-r));
	d->path[0] = 0;
}

void pins_abandon(struct pins_draft *d)
{
	if (d->path[0])
		draft_done(d, pins_remove_dir(d->path));
}

static int drop_all_but_link(const char *path, const char *leaf, void *userdata _unused_)
{
	if (strncmp(leaf, "link", 4) != 0)
		pins_drop(path, leaf);
	return 0;
}

void pins_discard(struct pins_draft *d)
{
	char gone[PINS_PATH_SIZE];
	uint64_t id;
	int r;

	if (!d->path[0])
		return;
	pins_each_entry(d->path, drop_all_but_link, NULL);
	r = pins_next_id(&id);
	if (r >= 0) {
		pins_orphans_path(id, gone);
		r = rename(d->path, gone) < 0 ? -errno : 0;
	}
	draft_done(d, r);
}

/* ── replacing ──────────────────────────────────────────────────────────────────────────── */

static int carry_leaf(const char *path, const char *leaf, void *userdata)
{
	struct pins_draft *d = userdata;
	_cleanup_close_ int fd = -EBADF;

	if (strncmp(leaf, PP_NAME_RECORD_LEAF, strlen(PP_NAME_RECORD_LEAF)) != 0 &&
	    strcmp(leaf, PINS_STOPPED) != 0)
		return 0;
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : pins_add(d, fd, leaf, 0, 0, 0600);
}

bool pins_has(const char *path, const char *leaf)
{
	char pin[PINS_PATH_SIZE];

	return pins_join(pin, path, leaf) >= 0 && access(pin, F_OK) == 0;
}

/* 1: it is a tape; 0; -errno. */
static int move_aside(const char *path, uint64_t id, char ret[PINS_PATH_SIZE])
{
	bool is_tape = pins_has(path, PINS_FIRED);

	if (is_tape)
		snprintf(ret, PINS_PATH_SIZE, "%s%" PRIu64,
			 pins_has(path, PINS_KEPT) ? KEPT_PREFIX : TAPE_PREFIX, id);
	else
		pins_orphans_path(id, ret);
	return renameat2(AT_FDCWD, path, AT_FDCWD, ret, RENAME_NOREPLACE) < 0 ? -errno : is_tape;
}

int pins_put_aside(const char *path, uint64_t id)
{
	char aside[PINS_PATH_SIZE];
	int is_tape = move_aside(path, id, aside);

	if (is_tape < 0)
		return is_tape;
	if (is_tape)
		pins_strip_tape(aside);
	else
		pins_drop_counters(aside);
	return 0;
}

int pins_release_tape(uint64_t id)
{
	char path[PINS_PATH_SIZE], gone[PINS_PATH_SIZE];

	pins_tape_path(id, path);
	pins_orphans_path(id, gone);
	return renameat2(AT_FDCWD, path, AT_FDCWD, gone, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

int pins_replace(struct pins_draft *d, const char *path, uint64_t orphans_id)
{
	int r;

	r = pins_each_entry(path, carry_leaf, d);
	if (r >= 0)
		r = pins_grant_directory(d->path, d->group, d->mode);
	if (r < 0)
		return r;
	if (renameat2(AT_FDCWD, d->path, AT_FDCWD, path, RENAME_EXCHANGE) < 0)
		return -errno;
	/* Done. The draft's path now has the old directory. */
	if (pins_put_aside(d->path, orphans_id) < 0)
		pins_abandon(d);
	d->path[0] = 0;
	return 0;
}

/* ── finding and removing ───────────────────────────────────────────────────────────────── */

bool pins_exists(const char *ns, const char *name)
{
	char path[PINS_PATH_SIZE];
	struct stat st;

	return pins_join(path, ns, name) >= 0 && stat(path, &st) == 0;
}

static void frozen_path(const char *path, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, FROZEN_PREFIX "%s", strrchr(path, '/') + 1);
}

int pins_mark_frozen(const char *path)
{
	char link[PINS_PATH_SIZE];

	frozen_path(path, link);
	return symlink(path, link) < 0 && errno != EEXIST ? -errno : 0;
}

void pins_unmark_frozen(const char *path)
{
	char link[PINS_PATH_SIZE];

	frozen_path(path, link);
	unlink(link);
}

int pins_remove(const char *path, uint64_t orphans_id, char ret_gone[PINS_PATH_SIZE])
{
	int r;

	pins_unmark_frozen(path);
	r = move_aside(path, orphans_id, ret_gone);
	if (r >= 0)
		pins_drop_counters(ret_gone);
	return MIN(r, 0);
}
