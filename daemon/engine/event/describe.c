// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists rings, slots and links. See describe.h. */
#include "daemon/engine/event/describe.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/link-facts.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "proto/descriptor.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"

struct list {
	struct pp_descriptor *v;
	size_t n;
	struct link_fact *facts; /* of all links of the machine */
	size_t n_facts;
	bool counts; /* its perf events count; else they only carry links */
};

static void list_done(struct list *l)
{
	free(l->v);
	free(l->facts);
}

static int add(struct list *l, const struct pp_descriptor *d)
{
	struct pp_descriptor *more = reallocarray(l->v, l->n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->v = more;
	l->v[l->n++] = *d;
	return 0;
}

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

/* A ring lives as long as the counters that write to it. */
static enum pp_alive is_alive(const struct list *l, const struct meta_map *map)
{
	uint64_t now = cpu_states_generation(map->cpu);

	if (!l->counts)
		return PP_ALIVE_YES;
	if (now == CPU_STATES_NONE || map->generation == CPU_STATES_NONE)
		return PP_ALIVE_UNKNOWN;
	return map->generation == now ? PP_ALIVE_YES : PP_ALIVE_NO;
}

static int add_map(struct list *l, const struct meta_map *map)
{
	bool is_ring = map->cpu != UINT32_MAX;
	struct pp_descriptor d = {
		.kind = is_ring ? PP_DESCRIPTOR_RING : PP_DESCRIPTOR_CATALOG,
		.cpu = is_ring ? (int32_t)map->cpu : -1,
		.id = map->id,
		.generation = is_ring ? map->generation : 0,
		.alive = is_ring ? is_alive(l, map) : PP_ALIVE_YES,
	};

	return add(l, &d);
}

static int add_maps(struct list *l, const char *path)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	_cleanup_free_ struct meta_map *maps = NULL;
	struct pp_msg_target target;
	struct pp_event event;
	size_t n = 0;
	int r = meta < 0 ? meta : meta_read_all(meta, &event, NULL, &maps, &n, NULL);

	if (r >= 0)
		r = meta_read_target(meta, &target);
	l->counts = r >= 0 && event.recorder == PP_RECORDER_OVERFLOW &&
		    !(event.spec.flags & PP_EVENT_ADOPTED) && !target_is_task(&target);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = add_map(l, &maps[i]);
	return r;
}

/* ── slots and links ────────────────────────────────────────────────────────────────────── */

static int add_programs(struct list *l, int fd)
{
	struct pp_descriptor d = {
		.kind = PP_DESCRIPTOR_PROGRAMS,
		.cpu = -1,
		.alive = PP_ALIVE_YES,
	};
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	d.id = info.id;
	return add(l, &d);
}

static void add_facts(const struct list *l, struct pp_descriptor *d)
{
	const struct link_fact *fact = link_facts_find(l->facts, l->n_facts, d->id);

	if (!fact)
		return;
	d->perf_id = fact->perf_id;
	d->alive = fact->alive ? PP_ALIVE_YES : PP_ALIVE_NO;
	if (d->kind != PP_DESCRIPTOR_COUNTER)
		return;
	d->cpu = fact->cpu;
	d->tid = fact->tid;
}

static int add_link(struct list *l, int fd, const char *leaf)
{
	struct pp_descriptor d = {
		.kind = pins_is_counter(leaf) ? PP_DESCRIPTOR_COUNTER : PP_DESCRIPTOR_LINK,
		.cpu = -1,
	};
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	d.id = info.id;
	if (info.type == BPF_LINK_TYPE_PERF_EVENT)
		add_facts(l, &d);
	/* What only carries a program need not be alive itself. */
	if (d.kind == PP_DESCRIPTOR_LINK)
		d.alive = PP_ALIVE_YES;
	return add(l, &d);
}

static int add_leaf(const char *path, const char *leaf, void *userdata)
{
	bool is_link = pins_is_link(leaf);
	_cleanup_close_ int fd = -EBADF;

	if (!is_link && !pins_is_programs(leaf))
		return 0;
	fd = pins_get(path, leaf);
	if (fd < 0)
		return fd;
	return is_link ? add_link(userdata, fd, leaf) : add_programs(userdata, fd);
}

static int in_order(const void *a, const void *b)
{
	const struct pp_descriptor *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Without facts it is unknown what lives. */
static int list_all(struct list *l, const char *path, uid_t broker)
{
	int r = add_maps(l, path);

	if (r < 0)
		return r;
	if (link_facts_read(broker, &l->facts, &l->n_facts) < 0)
		l->n_facts = 0;
	r = pins_foreach_leaf(path, add_leaf, l);
	if (r >= 0)
		qsort(l->v, l->n, sizeof(*l->v), in_order);
	return r;
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static int write_file(const struct list *l, int *ret)
{
	size_t size = l->n * sizeof(*l->v);
	_cleanup_close_ int fd = -EBADF;
	int r = pp_memfile_new("perfpersist-descriptors", size, &fd);

	if (r >= 0)
		r = pp_write_all(fd, l->v, size);
	return r < 0 ? r : pp_memfile_finish(fd, ret);
}

int event_describe_parts(const char *path, uid_t broker, int *ret, struct failure *f)
{
	_cleanup_(list_done) struct list l = {};
	int r = list_all(&l, path, broker);

	if (r >= 0)
		r = write_file(&l, ret);
	return r < 0 ? fail(f, -r, "Cannot list what '%s' consists of: %s.", path, strerror(-r))
		     : 0;
}
