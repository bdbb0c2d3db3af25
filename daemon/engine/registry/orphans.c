// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rings without an event that somebody still has mapped. See orphans.h. */
#include "daemon/engine/registry/orphans.h"

#include <bpf/bpf.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/registry/mark.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define LOOK_SOON 10 /* ms; grows by half each time that nothing has changed */
#define LOOK_LATE 2000

struct remain {
	struct pp_orphans told; /* as last reported */
	struct meta_map *maps;	/* those that still existed */
	size_t n;
};

static struct remain *all;
static size_t n_all, room;
static unsigned interval = LOOK_SOON;
static int64_t due; /* ms, of CLOCK_MONOTONIC */

void orphans_hurry(void)
{
	interval = LOOK_SOON;
	due = pp_clock_ms() + interval;
}

/* ── which maps ─────────────────────────────────────────────────────────────────────────── */

static int read_maps(const char *path, struct pp_event *ret_event, struct meta_map **ret,
		     size_t *ret_n)
{
	_cleanup_close_ int fd = pins_get(path, "meta");

	return fd < 0 ? fd : meta_read_all(fd, ret_event, NULL, ret, ret_n, NULL);
}

/* Map ids that events have; sorted by seal(). */
struct in_use {
	uint32_t *id;
	size_t n;
};

static void in_use_done(struct in_use *u)
{
	free(u->id);
}

static int make_room(struct in_use *u, size_t n)
{
	uint32_t *more = reallocarray(u->id, u->n + n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	u->id = more;
	return 0;
}

/* The second set of an armed event (event/arm.h): meta does not list it, and it may record already. */
static int in_use_add_spare(const char *path, struct in_use *u)
{
	_cleanup_close_ int spare = pins_get(path, "spare");
	int possible = pp_cpus_possible(), r;

	if (spare < 0 || possible < 0)
		return spare == -ENOENT ? 0 : MIN(spare, possible);
	r = make_room(u, (size_t)possible);
	for (uint32_t cpu = 0; r >= 0 && cpu < (uint32_t)possible; cpu++) {
		if (bpf_map_lookup_elem(spare, &cpu, &u->id[u->n]) >= 0)
			u->n++;
		else if (errno != ENOENT)
			r = -errno;
	}
	return r;
}

static int in_use_add(const char *path, void *userdata)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	struct in_use *u = userdata;
	struct pp_event event;
	size_t n = 0;
	int r;

	r = read_maps(path, &event, &maps, &n);
	/* An event that this version cannot read shares no maps with ours. After any other failure the
	 * rings of a living event would look deleted. */
	if (r < 0 || n == 0)
		return meta_is_strange(r) ? 0 : MIN(r, 0);
	r = make_room(u, n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		u->id[u->n++] = maps[i].id;
	return r < 0 ? r : in_use_add_spare(path, u);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void seal(struct in_use *u)
{
	if (u->n)
		qsort(u->id, u->n, sizeof(*u->id), by_id);
}

static bool is_in_use(const struct in_use *u, uint32_t id)
{
	return u->n && bsearch(&id, u->id, u->n, sizeof(id), by_id);
}

/* Drops those in use. Returns how many are left. */
static size_t drop_in_use(const struct in_use *u, struct meta_map *maps, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (!is_in_use(u, maps[i].id))
			maps[left++] = maps[i];
	return left;
}

static uint64_t bytes_of(const struct meta_map *maps, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += maps[i].bytes;
	return bytes;
}

static bool has_ring(const struct meta_map *maps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (maps[i].cpu != UINT32_MAX)
			return true;
	return false;
}

/* ── registering ────────────────────────────────────────────────────────────────────────── */

static int keep(uint64_t id, const struct pp_event *event, struct meta_map *maps, size_t n)
{
	if (n_all == room) {
		size_t more = MAX(room * 2, (size_t)16);
		struct remain *bigger = reallocarray(all, more, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		all = bigger;
		room = more;
	}
	all[n_all] = (struct remain){ .maps = maps, .n = n };
	all[n_all].told.id = id;
	all[n_all].told.bytes = bytes_of(maps, n);
	all[n_all].told.creator = event->spec.creator;
	memcpy(all[n_all].told.ns, event->spec.ns, sizeof(event->spec.ns));
	n_all++;
	orphans_hurry();
	return 0;
}

/* Registers one. Returns the number of charged maps; 0: it can be removed; or -errno. */
static int take(const char *path, uint64_t id, const struct in_use *in_use)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	struct pp_event event;
	size_t n = 0, left;
	int r;

	r = read_maps(path, &event, &maps, &n);
	if (r < 0)
		return r;
	left = drop_in_use(in_use, maps, n);
	if (left == 0)
		return 0;
	r = keep(id, &event, maps, left);
	if (r < 0)
		return r;
	(void)TAKE_PTR(maps);
	return left;
}

static void take_or_forget(const char *path, uint64_t id, const struct in_use *in_use)
{
	int r = take(path, id, in_use);

	if (r > 0)
		return;
	if (r < 0 && r != -ENOENT)
		log_warning("Cannot read the description of the deleted or changed event in %s "
			    "(%s); its rings are charged to no user.",
			    path, strerror(-r));
	orphans_bury(path);
	pins_forget(id);
}

void orphans_add(uint64_t id, const char *successor, struct pp_orphans *ret)
{
	_cleanup_(in_use_done) struct in_use in_use = {};
	char path[PINS_PATH_SIZE];
	size_t before = n_all;
	int r = successor ? in_use_add(successor, &in_use) : 0;

	seal(&in_use);
	pins_tape_path(id, path);
	if (access(path, F_OK) < 0)
		pins_orphans_path(id, path);
	if (r >= 0) /* else it would be charged for what lives on */
		take_or_forget(path, id, &in_use);
	*ret = n_all > before ? all[before].told : (struct pp_orphans){};
}

void orphans_bury(const char *path)
{
	_cleanup_close_ int meta = pins_get(path, "meta");

	if (meta >= 0)
		meta_mark_deleted(meta);
}

/* ── checking what is left ──────────────────────────────────────────────────────────────── */

/* Ids count up, so another map can have this id only after four thousand million; the name tells it
 * apart. A map that cannot be examined counts as existing. */
static bool is_there(const struct meta_map *map)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	_cleanup_close_ int fd = meta_map_open(map);

	if (fd < 0)
		return fd != -ENOENT;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return true;
	return !strcmp(info.name, map->cpu == UINT32_MAX ? "pp_catalog" : "pp_ring");
}

/* Updates it. Returns whether it holds less than before. */
static bool look_at(struct remain *r)
{
	size_t left = 0;

	for (size_t i = 0; i < r->n; i++)
		if (is_there(&r->maps[i]))
			r->maps[left++] = r->maps[i];
	if (left == r->n)
		return false;
	r->n = left;
	r->told.bytes = bytes_of(r->maps, left);
	return true;
}

static void drop(size_t i)
{
	uint64_t id = all[i].told.id;
	char path[PINS_PATH_SIZE];
	int r = pins_forget(id);

	pins_orphans_path(id, path);
	if (r < 0)
		log_warning("Cannot remove %s, the rest of a deleted or changed event, from the "
			    "registry: %s.",
			    path, strerror(-r));
	free(all[i].maps);
	all[i] = all[--n_all];
}

void orphans_look(void (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata)
{
	bool changed = false;

	if (n_all == 0 || pp_clock_ms() < due)
		return;
	for (size_t i = n_all; i-- > 0;) {
		if (!look_at(&all[i]))
			continue;
		changed = true;
		fn(&all[i].told, userdata);
		if (all[i].n == 0)
			drop(i);
	}
	interval = changed ? LOOK_SOON : MIN(interval + interval / 2, (unsigned)LOOK_LATE);
	due = pp_clock_ms() + interval;
}

/* ── at start ───────────────────────────────────────────────────────────────────────────── */

static int recover_one(const char *path, uint64_t id, void *userdata)
{
	size_t i = n_all;

	take_or_forget(path, id, userdata);
	if (n_all == i)
		return 0;
	/* The engine may have died before it marked the rings. A reader that opens the event again
	 * finds out whether it was changed or deleted. */
	if (has_ring(all[i].maps, all[i].n) && !pins_has(path, PINS_CLAIMED))
		mark_path(path, PP_RING_RETIRED);
	if (look_at(&all[i]) && all[i].n == 0)
		drop(i);
	return 0;
}

static int any(const char *path _unused_, uint64_t id _unused_, void *userdata _unused_)
{
	return -ECANCELED;
}

int orphans_recover(void)
{
	_cleanup_(in_use_done) struct in_use in_use = {};
	int r;

	while (n_all > 0)
		free(all[--n_all].maps);
	r = pins_foreach_orphans(any, NULL);
	if (r >= 0)
		r = pins_foreach_tape(any, NULL);
	if (r != -ECANCELED)
		return r;
	r = pins_foreach(in_use_add, &in_use);
	if (r < 0)
		return r;
	seal(&in_use);
	r = pins_foreach_tape(recover_one, &in_use);
	return r < 0 ? r : pins_foreach_orphans(recover_one, &in_use);
}

/* ── reporting ──────────────────────────────────────────────────────────────────────────── */

int orphans_timeout(void)
{
	int64_t left = due - pp_clock_ms();

	return n_all == 0 ? -1 : (int)MAX(left, (int64_t)0);
}

int orphans_foreach(int (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n_all; i++)
		r = fn(&all[i].told, userdata);
	return r;
}

uint64_t orphans_bytes(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n_all; i++)
		bytes += all[i].told.bytes;
	return bytes;
}
