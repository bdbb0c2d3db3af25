// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registry on disk. See pins.h. */
#include "daemon/engine/pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

#define NEW_PREFIX "+new-"
#define DEL_PREFIX "+del-"
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
	/* An id leads to its event; which ids there are is not for everyone to list. */
	if (mkdir(PP_BY_ID, 0711) < 0 && errno != EEXIST)
		return -errno;
	return chmod(PP_BY_ID, 0711) < 0 ? -errno : 0;
}

/* ── walking ────────────────────────────────────────────────────────────────────────────── */

/* Runs fn for each entry of a directory but "." and "..". */
static int each_entry(const char *dir, int (*fn)(const char *dir, const char *leaf, void *userdata),
		      void *userdata)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	if (!d)
		return -errno;
	while (r >= 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(dir, e->d_name, userdata);
	return r;
}

static int join(char ret[PINS_PATH_SIZE], const char *dir, const char *leaf)
{
	return snprintf(ret, PINS_PATH_SIZE, "%s/%s", dir, leaf) >= PINS_PATH_SIZE ? -ENAMETOOLONG
										   : 0;
}

static int remove_leaf(const char *dir, const char *leaf, void *userdata _unused_)
{
	char path[PINS_PATH_SIZE];

	if (join(path, dir, leaf) < 0)
		return -ENAMETOOLONG;
	/* Two reapers may be at it: what is gone is what was wanted. */
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes a directory of pins. */
static int remove_dir(const char *path)
{
	int r = each_entry(path, remove_leaf, NULL);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

static bool is_namespace(const char *leaf)
{
	struct stat st;

	return leaf[0] != '+' && strcmp(leaf, PP_BY_ID) != 0 && lstat(leaf, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

struct walk {
	int (*fn)(const char *path, void *userdata);
	void *userdata;
};

static int walk_event(const char *dir, const char *leaf, void *userdata)
{
	const struct walk *w = userdata;
	char path[PINS_PATH_SIZE];

	return join(path, dir, leaf) < 0 ? 0 : w->fn(path, w->userdata);
}

static int walk_namespace(const char *dir _unused_, const char *leaf, void *userdata)
{
	return is_namespace(leaf) ? each_entry(leaf, walk_event, userdata) : 0;
}

int pins_foreach(int (*fn)(const char *path, void *userdata), void *userdata)
{
	struct walk w = { fn, userdata };

	return each_entry(".", walk_namespace, &w);
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
	struct timespec now;
	uint32_t zero = 0;
	uint64_t id;

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &id) < 0)
		return -errno;
	if (id == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		id = now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
	}
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

	if (join(path, d->path, leaf) < 0)
		return -ENAMETOOLONG;
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	/* The mode first: chmod of what is another's would need one more capability. */
	if (chmod(path, mode) < 0 || chown(path, owner, group) < 0)
		return -errno;
	return 0;
}

/*
 * The namespace's r lets its directories be listed; everyone may pass through, since the
 * broker must and has no rights of its own: what is inside is guarded by its own modes.
 */
static mode_t directory_mode(mode_t mode)
{
	return 0711 | (mode & 040) | (mode & 004);
}

static int grant(const char *path, const struct pins_draft *d)
{
	if (chmod(path, directory_mode(d->mode)) < 0 || chown(path, 0, d->group) < 0)
		return -errno;
	return 0;
}

static int make_namespace(const char *ns, const struct pins_draft *d)
{
	if (mkdir(ns, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	return grant(ns, d);
}

int pins_link_id(uint64_t id, const char *path)
{
	char link[PINS_PATH_SIZE], target[PINS_PATH_SIZE];

	id_path(id, link);
	if (join(target, "..", path) < 0)
		return -ENAMETOOLONG;
	return symlink(target, link) < 0 && errno != EEXIST ? -errno : 0;
}

int pins_commit(struct pins_draft *d, const struct pp_spec *spec, uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r;

	if (join(path, spec->ns, spec->name) < 0)
		return -ENAMETOOLONG;
	r = grant(d->path, d);
	if (r >= 0)
		r = make_namespace(spec->ns, d);
	/* The id first: an event that is there can always be found by it. */
	if (r >= 0)
		r = pins_link_id(id, path);
	if (r >= 0 && renameat2(AT_FDCWD, d->path, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		char link[PINS_PATH_SIZE];

		id_path(id, link);
		unlink(link);
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
	r = remove_dir(d->path);
	if (r < 0)
		log_error("cannot remove the half-made %s from the registry: %s", d->path,
			  strerror(-r));
	d->path[0] = 0;
}

/* ── finding and removing ───────────────────────────────────────────────────────────────── */

int pins_find(uint64_t id, char ret[PINS_PATH_SIZE])
{
	char link[PINS_PATH_SIZE], target[PINS_PATH_SIZE];
	struct stat st;
	ssize_t n;

	id_path(id, link);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	if (strncmp(target, "../", 3) != 0 || lstat(target + 3, &st) < 0)
		return -ENOENT;
	strcpy(ret, target + 3);
	return 0;
}

bool pins_exists(const char *ns, const char *name)
{
	char path[PINS_PATH_SIZE];
	struct stat st;

	return join(path, ns, name) >= 0 && lstat(path, &st) == 0;
}

int pins_remove(const char *path, uint64_t id)
{
	char gone[PINS_PATH_SIZE], link[PINS_PATH_SIZE], ns[PINS_PATH_SIZE];

	snprintf(gone, sizeof(gone), DEL_PREFIX "%" PRIu64, id);
	if (renameat2(AT_FDCWD, path, AT_FDCWD, gone, RENAME_NOREPLACE) < 0)
		return -errno;
	id_path(id, link);
	unlink(link);
	snprintf(ns, sizeof(ns), "%.*s", (int)strcspn(path, "/"), path);
	rmdir(ns); /* the last event takes its namespace's directory with it */
	return 0;
}

static void remove_or_tell(const char *leaf)
{
	int r = remove_dir(leaf);

	if (r < 0)
		log_error("cannot remove %s from the registry: %s", leaf, strerror(-r));
}

struct reap {
	void (*first)(const char *path);
};

static int reap_deleted(const char *dir _unused_, const char *leaf, void *userdata)
{
	const struct reap *reap = userdata;

	if (strncmp(leaf, DEL_PREFIX, strlen(DEL_PREFIX)) != 0)
		return 0;
	reap->first(leaf);
	remove_or_tell(leaf);
	return 0;
}

int pins_reap(void (*first)(const char *path))
{
	struct reap reap = { first };

	return each_entry(".", reap_deleted, &reap);
}

/* ── recovery ───────────────────────────────────────────────────────────────────────────── */

static int drop_dangling(const char *dir, const char *leaf, void *userdata _unused_)
{
	char path[PINS_PATH_SIZE];
	struct stat st;

	if (join(path, dir, leaf) >= 0 && stat(path, &st) < 0 && errno == ENOENT)
		unlink(path);
	return 0;
}

static int drop_empty_namespace(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	if (is_namespace(leaf))
		rmdir(leaf);
	return 0;
}

static int drop_draft(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	if (strncmp(leaf, NEW_PREFIX, strlen(NEW_PREFIX)) == 0)
		remove_or_tell(leaf);
	return 0;
}

int pins_recover(void)
{
	int r;

	r = each_entry(".", drop_draft, NULL);
	if (r >= 0)
		r = each_entry(PP_BY_ID, drop_dangling, NULL);
	if (r >= 0)
		r = each_entry(".", drop_empty_namespace, NULL);
	return r;
}
