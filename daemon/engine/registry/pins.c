// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registry on disk: how events arrive in it, are replaced, found and leave. See pins.h. */
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
#include "proto/places.h"

#define LAST_ID "+last-id"

int pins_open(const char *registry)
{
	struct statfs fs;

	if (mkdir(registry, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (statfs(registry, &fs) < 0)
		return -errno;
	if ((unsigned long)fs.f_type != BPF_FS_MAGIC &&
	    mount("bpf", registry, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return -errno;
	if (chdir(registry) < 0)
		return -errno;
	/* An id leads to the names of its event, and ids count up: to go through them would list the
	 * events of namespaces that one may not read. */
	if (mkdir(PP_BY_ID, 0700) < 0 && errno != EEXIST)
		return -errno;
	return chmod(PP_BY_ID, 0700) < 0 ? -errno : 0;
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

void pins_namespace(const char *path, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, "%.*s", (int)strcspn(path, "/"), path);
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
 * Ids count up from the microsecond of the first one, so that they differ from those of an
 * earlier boot, too, whose saved rings may still be around.
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

static void id_path(uint64_t id, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, "%s/%" PRIu64, PP_BY_ID, id);
}

int pins_link_id(uint64_t id, const char *path)
{
	char link[PINS_PATH_SIZE];

	id_path(id, link);
	return pins_point(link, path);
}

void pins_unlink_id(uint64_t id)
{
	char link[PINS_PATH_SIZE];

	id_path(id, link);
	unlink(link);
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
	/* The mode first: chmod of what is another's would need one more capability. */
	if (chmod(path, mode) < 0 || chown(path, owner, group) < 0)
		return -errno;
	return 0;
}

int pins_own(const char *leaf, uid_t owner, mode_t mode)
{
	struct stat st;

	if (stat(leaf, &st) < 0)
		return -errno;
	if (st.st_uid == 0 && chmod(leaf, mode) < 0) /* later it would need CAP_FOWNER */
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

	if (pins_join(path, spec->ns, spec->name) < 0)
		return -ENAMETOOLONG;
	r = pins_grant_directory(d->path, d->group, d->mode);
	if (r >= 0)
		r = pins_make_namespace(spec->ns, d->group, d->mode);
	/* The id first: an event that is there can always be found by it. */
	if (r >= 0)
		r = pins_link_id(id, path);
	if (r >= 0 && renameat2(AT_FDCWD, d->path, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		pins_unlink_id(id);
		rmdir(spec->ns); /* only if it is empty, so if it was made here */
		return r;
	}
	d->path[0] = 0;
	return 0;
}

void pins_abandon(struct pins_draft *d)
{
	int r;

	if (!d->path[0])
		return;
	r = pins_remove_dir(d->path);
	if (r < 0)
		log_error("cannot remove the half-made %s from the registry: %s", d->path,
			  strerror(-r));
	d->path[0] = 0;
}

/* ── replacing ──────────────────────────────────────────────────────────────────────────── */

static int carry_alias(const char *path, const char *leaf, void *userdata)
{
	struct pins_draft *d = userdata;
	_cleanup_close_ int fd = -EBADF;

	if (strncmp(leaf, PINS_ALIAS, strlen(PINS_ALIAS)) != 0)
		return 0;
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : pins_add(d, fd, leaf, 0, 0, 0600);
}

int pins_replace(struct pins_draft *d, const char *path, uint64_t orphans_id)
{
	char gone[PINS_PATH_SIZE];
	int r;

	r = pins_each_entry(path, carry_alias, d);
	if (r >= 0)
		r = pins_grant_directory(d->path, d->group, d->mode);
	if (r < 0)
		return r;
	if (renameat2(AT_FDCWD, d->path, AT_FDCWD, path, RENAME_EXCHANGE) < 0)
		return -errno;
	/* Done. What is at the draft's path now is what was there before. */
	pins_orphans_path(orphans_id, gone);
	if (renameat2(AT_FDCWD, d->path, AT_FDCWD, gone, RENAME_NOREPLACE) < 0)
		pins_abandon(d);
	else
		pins_drop_counters(gone);
	d->path[0] = 0;
	return 0;
}

/* ── finding and removing ───────────────────────────────────────────────────────────────── */

/* "NAMESPACE/EVENT", which the symlink leads to from one directory further down. */
static int read_link(const char *link, char ret[PINS_PATH_SIZE])
{
	char target[PINS_PATH_SIZE];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	if (strncmp(target, "../", 3) != 0)
		return -ENOENT;
	strcpy(ret, target + 3);
	return 0;
}

int pins_find(uint64_t id, char ret[PINS_PATH_SIZE])
{
	char link[PINS_PATH_SIZE], path[PINS_PATH_SIZE];
	struct stat st;
	int r;

	id_path(id, link);
	r = read_link(link, path);
	if (r < 0)
		return r;
	if (lstat(path, &st) < 0)
		return -errno;
	strcpy(ret, path);
	return 0;
}

int pins_directory(const char *path, char ret[PINS_PATH_SIZE])
{
	char target[PINS_PATH_SIZE];
	struct stat st;
	int r;

	snprintf(target, sizeof(target), "%s", path);
	if (lstat(path, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		r = read_link(path, target);
		if (r < 0)
			return r;
		if (lstat(target, &st) < 0)
			return -errno;
	}
	if (!S_ISDIR(st.st_mode))
		return -ENOENT;
	strcpy(ret, target);
	return 0;
}

bool pins_exists(const char *ns, const char *name)
{
	char path[PINS_PATH_SIZE];
	struct stat st;

	return pins_join(path, ns, name) >= 0 && lstat(path, &st) == 0;
}

int pins_remove(const char *path, uint64_t id, uint64_t orphans_id)
{
	char gone[PINS_PATH_SIZE], ns[PINS_PATH_SIZE];

	pins_orphans_path(orphans_id, gone);
	if (renameat2(AT_FDCWD, path, AT_FDCWD, gone, RENAME_NOREPLACE) < 0)
		return -errno;
	pins_drop_counters(gone);
	pins_unlink_id(id);
	pins_namespace(path, ns);
	rmdir(ns); /* the last event takes its namespace's directory with it */
	return 0;
}
