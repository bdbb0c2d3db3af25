// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks the registry, and removes leftovers. See pins.h. */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/engine/registry/pins-internal.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

/* ── walking ────────────────────────────────────────────────────────────────────────────── */

int pins_each_entry(const char *dir, int (*fn)(const char *dir, const char *leaf, void *userdata),
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

int pins_foreach_leaf(const char *path,
		      int (*fn)(const char *path, const char *leaf, void *userdata), void *userdata)
{
	return pins_each_entry(path, fn, userdata);
}

/* Whether the path is there and of that type; -errno. */
static int is_of_type(const char *path, mode_t type)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return (st.st_mode & S_IFMT) == type;
}

static int is_namespace(const char *leaf)
{
	return leaf[0] != '+' && strcmp(leaf, PP_BY_ID) != 0 ? is_of_type(leaf, S_IFDIR) : 0;
}

struct walk {
	int (*fn)(const char *path, void *userdata);
	void *userdata;
	mode_t type;
};

static int walk_leaf(const char *dir, const char *leaf, void *userdata)
{
	const struct walk *w = userdata;
	char path[PINS_PATH_SIZE];
	int r;

	if (pins_join(path, dir, leaf) < 0)
		return 0;
	r = is_of_type(path, w->type);
	return r > 0 ? w->fn(path, w->userdata) : r;
}

static int walk_namespace(const char *dir _unused_, const char *leaf, void *userdata)
{
	int r = is_namespace(leaf);

	return r > 0 ? pins_each_entry(leaf, walk_leaf, userdata) : r;
}

int pins_foreach(int (*fn)(const char *path, void *userdata), void *userdata)
{
	struct walk w = { fn, userdata, S_IFDIR };

	return pins_each_entry(PP_BY_ID, walk_leaf, &w);
}

int pins_foreach_link(int (*fn)(const char *path, void *userdata), void *userdata)
{
	struct walk w = { fn, userdata, S_IFLNK };

	return pins_each_entry(".", walk_namespace, &w);
}

int pins_foreach_old(int (*fn)(const char *path, void *userdata), void *userdata)
{
	struct walk w = { fn, userdata, S_IFDIR };

	return pins_each_entry(".", walk_namespace, &w);
}

/* ── orphans ────────────────────────────────────────────────────────────────────────────── */

void pins_orphans_path(uint64_t id, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, DEL_PREFIX "%" PRIu64, id);
}

void pins_tape_path(uint64_t id, char ret[PINS_PATH_SIZE])
{
	snprintf(ret, PINS_PATH_SIZE, KEPT_PREFIX "%" PRIu64, id);
	if (access(ret, F_OK) < 0)
		snprintf(ret, PINS_PATH_SIZE, TAPE_PREFIX "%" PRIu64, id);
}

struct walk_aside {
	const char *prefix;
	int (*fn)(const char *path, uint64_t id, void *userdata);
	void *userdata;
};

static int walk_aside(const char *dir _unused_, const char *leaf, void *userdata)
{
	const struct walk_aside *w = userdata;
	uint64_t id;

	if (strncmp(leaf, w->prefix, strlen(w->prefix)) != 0 ||
	    pp_parse_u64(leaf + strlen(w->prefix), &id) < 0)
		return 0;
	return w->fn(leaf, id, w->userdata);
}

int pins_foreach_orphans(int (*fn)(const char *path, uint64_t id, void *userdata), void *userdata)
{
	struct walk_aside w = { DEL_PREFIX, fn, userdata };

	return pins_each_entry(".", walk_aside, &w);
}

int pins_foreach_tape(int (*fn)(const char *path, uint64_t id, void *userdata), void *userdata)
{
	struct walk_aside w = { TAPE_PREFIX, fn, userdata }, kept = { KEPT_PREFIX, fn, userdata };
	int r = pins_each_entry(".", walk_aside, &w);

	return r < 0 ? r : pins_each_entry(".", walk_aside, &kept);
}

bool pins_is_link(const char *leaf)
{
	return !strncmp(leaf, "link", 4);
}

bool pins_is_programs(const char *leaf)
{
	return !strncmp(leaf, "progs", 5);
}

bool pins_is_counter(const char *leaf)
{
	if (!strncmp(leaf, PINS_FORMER, strlen(PINS_FORMER)))
		leaf += strlen(PINS_FORMER);
	return pins_is_link(leaf) && strpbrk(leaf, "-+");
}

/*
 * Engine and reaper may both remove it: a missing pin is fine.
 *
 * The kernel closes objects that only a pin holds in one worker for the whole machine, one after
 * the other (delayed_fput()). Behind 720 tracepoints, each of which waits for grace periods, a
 * breakpoint kept its register for 34 s on a busy machine (6.18). With a descriptor that outlives
 * the pin it is closed here and now. (Before Linux 6.18, and the stable releases of its time, a pin
 * holds on for one grace period more: there the worker may still be the last.)
 */
static int remove_leaf(const char *dir, const char *leaf, void *userdata _unused_)
{
	_cleanup_close_ int counter = -EBADF;
	char path[PINS_PATH_SIZE];

	if (pins_join(path, dir, leaf) < 0)
		return -ENAMETOOLONG;
	if (pins_is_counter(leaf))
		counter = bpf_obj_get(path);
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

void pins_drop(const char *path, const char *leaf)
{
	remove_leaf(path, leaf, NULL);
}

static bool is_of_tape(const char *leaf)
{
	static const char *const leaves[] = { "meta",	 "rings",    "catalog",
					      "earlier", "ringless", PINS_FIRED };

	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
		if (!strcmp(leaf, leaves[i]))
			return true;
	return !strncmp(leaf, "cpu", 3);
}

static int strip_leaf(const char *dir, const char *leaf, void *userdata _unused_)
{
	return is_of_tape(leaf) ? 0 : remove_leaf(dir, leaf, NULL);
}

void pins_strip_tape(const char *path)
{
	pins_each_entry(path, strip_leaf, NULL);
}

/* An adopted one may have a child for each thread of its creator's, which are closed one by one: 4,000 threads
 * took 0.8 s. That is the reaper's. */
static int drop_counter(const char *dir, const char *leaf, void *userdata _unused_)
{
	return pins_is_counter(leaf) && !strchr(leaf, '+') ? remove_leaf(dir, leaf, NULL) : 0;
}

void pins_drop_counters(const char *path)
{
	pins_each_entry(path, drop_counter, NULL);
}

/* Pins that `remove` leaves stay, with the directory. */
static int remove_dir(const char *path,
		      int (*remove)(const char *dir, const char *leaf, void *userdata))
{
	int r = pins_each_entry(path, remove, NULL);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return rmdir(path) < 0 && errno != ENOENT && errno != ENOTEMPTY ? -errno : 0;
}

int pins_remove_dir(const char *path)
{
	return remove_dir(path, remove_leaf);
}

int pins_forget(uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r;

	pins_orphans_path(id, path);
	r = remove_leaf(path, PINS_CLAIMED, NULL);
	if (r >= 0)
		r = remove_leaf(path, "meta", NULL);
	if (r < 0)
		return r;
	/* If the reaper is still at work it removes the directory. */
	return rmdir(path) < 0 && errno != ENOENT && errno != ENOTEMPTY ? -errno : 0;
}

static int remove_but_meta(const char *dir, const char *leaf, void *userdata _unused_)
{
	if (!strcmp(leaf, "meta") || !strcmp(leaf, PINS_CLAIMED))
		return 0;
	return remove_leaf(dir, leaf, NULL);
}

struct reaping {
	void (*first)(const char *path);
	int error;
};

/* One that cannot be removed keeps none of the others. */
static int reap_one(const char *path, uint64_t id _unused_, void *userdata)
{
	struct reaping *reaping = userdata;
	int r;

	reaping->first(path);
	r = remove_dir(path, remove_but_meta);
	if (r >= 0)
		return 0;
	log_error("Cannot remove %s, the rest of a deleted or changed event, from the registry: "
		  "%s.",
		  path, strerror(-r));
	reaping->error = r;
	return 0;
}

static int strip_tape(const char *path, uint64_t id _unused_, void *userdata _unused_)
{
	pins_strip_tape(path);
	return 0;
}

int pins_reap(void (*first)(const char *path))
{
	struct reaping reaping = { first, 0 };
	int r = pins_foreach_orphans(reap_one, &reaping);

	if (r >= 0)
		r = pins_foreach_tape(strip_tape, NULL);
	return r < 0 ? r : reaping.error;
}

/* ── CPUs ───────────────────────────────────────────────────────────────────────────────── */

/* "cpuN", "linkS-N" */
static bool leaf_cpu(const char *leaf, uint32_t *ret)
{
	const char *dash = strchr(leaf, '-');

	if (!strncmp(leaf, "cpu", 3))
		return pp_parse_u32(leaf + 3, ret) >= 0;
	return !strncmp(leaf, "link", 4) && dash && pp_parse_u32(dash + 1, ret) >= 0;
}

static int drop_other_cpu(const char *dir, const char *leaf, void *userdata)
{
	const struct pp_cpumask *cpus = userdata;
	uint32_t cpu;

	if (strcmp(leaf, SPARE_PIN) != 0 && (!leaf_cpu(leaf, &cpu) || pp_cpumask_test(cpus, cpu)))
		return 0;
	return remove_leaf(dir, leaf, NULL);
}

int pins_keep_cpus(const char *path, const struct pp_cpumask *cpus)
{
	struct pp_cpumask keep = *cpus;

	return pins_each_entry(path, drop_other_cpu, &keep);
}

/* ── recovery ───────────────────────────────────────────────────────────────────────────── */

/* Makes drafts orphans, or tapes: a draft that was an event, or nearly one, has rings that are
 * charged; and its links, which the kernel releases slowly, are left to the reaper. */
static int drop_draft(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	uint64_t id;
	int r;

	if (strncmp(leaf, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
		return 0;
	r = pins_next_id(&id);
	if (r >= 0)
		r = pins_put_aside(leaf, id);
	if (r < 0)
		log_error("Cannot remove the draft %s from the registry: %s; the engine's next "
			  "start tries again.",
			  leaf, strerror(-r));
	return 0;
}

static int recover_orphans(const char *path, uint64_t id _unused_, void *userdata _unused_)
{
	pins_drop_counters(path);
	return 0;
}

static int drop_frozen(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	if (!strncmp(leaf, FROZEN_PREFIX, strlen(FROZEN_PREFIX)))
		unlink(leaf);
	return 0;
}

int pins_recover(void)
{
	int r;

	unlink(SPARE_LINK);
	unlink(SPARE_PIN); /* the instance's; those of events: pins_keep_cpus() */
	pins_each_entry(".", drop_frozen, NULL);
	r = pins_each_entry(".", drop_draft, NULL);
	return r < 0 ? r : pins_foreach_orphans(recover_orphans, NULL);
}

static int drop_link(const char *path, void *userdata _unused_)
{
	return unlink(path) < 0 ? -errno : 0;
}

int pins_drop_old_ids(void)
{
	struct walk w = { drop_link, NULL, S_IFLNK };

	return pins_each_entry(PP_BY_ID, walk_leaf, &w);
}

static int drop_empty_namespace(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	if (is_namespace(leaf) > 0)
		rmdir(leaf);
	return 0;
}

int pins_sweep(void)
{
	return pins_each_entry(".", drop_empty_namespace, NULL);
}
