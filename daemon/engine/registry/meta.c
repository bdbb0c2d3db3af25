// SPDX-License-Identifier: LGPL-2.1-or-later
/* An event's description, in a map. See meta.h. */
#include "daemon/engine/registry/meta.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/cpus.h"
#include "daemon/text.h"
#include "proto/event-text.h"
#include "proto/macro.h"

/* Writes the text of `info`. It always fits: no value is longer than 1 KiB, and only three can be
 * that long. */
static int print_text(const struct pp_event *e, const struct pp_msg_target *target, char *buf,
		      size_t size, unsigned *ret_used)
{
	_cleanup_fclose_ FILE *f = fmemopen(buf, size, "w");
	const struct pp_spec *s = &e->spec;
	struct pp_event_text t = { .event = {
					   .id = e->id,
					   .recorder = e->recorder,
					   .sources = e->n_sources,
					   .set = e->set,
					   .data_size = s->data_size,
					   .memory = e->memory,
					   .sample_type = e->sample_type,
					   .period = s->period,
					   .max_rate = s->max_rate,
					   .flags = s->flags,
					   .max_stack = s->max_stack,
					   .stack_user = s->stack_user,
					   .owner = s->owner,
					   .group = s->group,
					   .mode = s->mode,
					   .creator = s->creator,
					   .created = e->created,
					   .state = e->paused ? PP_EVENT_PAUSED : PP_EVENT_RUNNING,
				   } };

	if (!f)
		return -errno;
	if (target)
		t.event.target = *target;
	memcpy(t.event.ns, s->ns, sizeof(t.event.ns));
	memcpy(t.event.name, s->name, sizeof(t.event.name));
	memcpy(t.event.event, s->event, sizeof(t.event.event));
	memcpy(t.event.filter, s->filter, sizeof(t.event.filter));
	/* Cuts a list that is too long, as the protocol does: the pins name every CPU. */
	(void)pp_format_cpus(&e->rings, t.event.cpus, sizeof(t.event.cpus));
	pp_event_text_write(f, &t);
	if (fflush(f) < 0 || ftell(f) >= (long)size)
		return -ENOSPC;
	*ret_used = ftell(f);
	return 0;
}

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

static size_t meta_size(const struct pp_event *event, size_t room, size_t n_sources, size_t n_nodes)
{
	return sizeof(struct pp_meta) + room * sizeof(struct meta_map) +
	       n_sources * sizeof(struct pp_source) + n_nodes * sizeof(struct pp_filter_node) +
	       (event->spec.flags & PP_EVENT_BOUND ? sizeof(struct pp_msg_target) : 0);
}

/* NULL: it has none. */
static struct pp_msg_target *target_of(struct pp_meta *m)
{
	size_t size = meta_size(&m->event, m->room, m->n_sources, m->n_nodes);

	if (!(m->event.spec.flags & PP_EVENT_BOUND))
		return NULL;
	return (void *)((uint8_t *)m + size - sizeof(struct pp_msg_target));
}

/* A reader that prints it meanwhile may see parts of both texts. */
static int set_event(struct pp_meta *m, const struct pp_event *event, bool pending)
{
	/* No change binds an event, or unbinds it: the size stays. */
	if ((m->event.spec.flags ^ event->spec.flags) & PP_EVENT_BOUND)
		return -EINVAL;
	m->event = *event;
	m->event.now = 0;
	m->pending = pending;
	return print_text(event, target_of(m), m->head.text, sizeof(m->head.text),
			  &m->head.text_size);
}

static void set_rest(struct pp_meta *m, const struct pp_parsed *parsed, const struct meta_map *maps,
		     size_t n_maps)
{
	uint8_t *at = m->rest + m->room * sizeof(*maps);

	m->n_maps = n_maps;
	m->n_sources = parsed->n_sources;
	m->n_nodes = parsed->n_nodes;
	memcpy(m->rest, maps, n_maps * sizeof(*maps));
	at = mempcpy(at, parsed->sources, parsed->n_sources * sizeof(parsed->sources[0]));
	memcpy(at, parsed->nodes, parsed->n_nodes * sizeof(parsed->nodes[0]));
}

int meta_create(const struct pp_event *event, const struct pp_parsed *parsed,
		const struct meta_map *maps, size_t n_maps, const struct pp_msg_target *target,
		bool pending, int *ret_fd)
{
	/* A ring for each possible CPU, and the catalog. */
	int possible = pp_cpus_possible(), r;
	size_t room = MAX((size_t)MAX(possible, 0) + 1, n_maps);
	size_t size = meta_size(event, room, parsed->n_sources, parsed->n_nodes);
	_cleanup_free_ struct pp_meta *m = calloc(1, size);
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd = -EBADF;
	uint32_t zero = 0;

	if (!m)
		return -ENOMEM;
	m->room = room;
	m->head.magic = PP_META_MAGIC;
	m->head.version = PP_META_VERSION;
	m->head.size = size;
	set_rest(m, parsed, maps, n_maps);
	m->event = *event;
	if (target && target_of(m))
		*target_of(m) = *target;
	r = set_event(m, event, pending);
	if (r < 0)
		return r;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_meta", 4, size, 1, &opts);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, m, BPF_ANY) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int write_value(int fd, const struct pp_meta *m)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(fd, &zero, m, BPF_ANY) < 0 ? -errno : 0;
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/*
 * Maps the value, because while the kernel copies one no program of a tracepoint runs on that CPU
 * (bpf_disable_instrumentation()), for milliseconds if the reader is preempted in it. Maps of our
 * earlier versions cannot be mapped. Writing remains a call: if it is killed, all or nothing is
 * written.
 */
static int copy_value(int fd, const struct bpf_map_info *info, struct pp_meta *ret)
{
	uint32_t zero = 0;
	void *at;

	if (!(info->map_flags & BPF_F_MMAPABLE))
		return bpf_map_lookup_elem(fd, &zero, ret) < 0 ? -errno : 0;
	at = mmap(NULL, info->value_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	memcpy(ret, at, info->value_size);
	munmap(at, info->value_size);
	return 0;
}

/* The map's whole value, whose size its maker chose; zero-filled to at least our size. */
static int read_value(int fd, struct pp_meta **ret, size_t *ret_size)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	struct pp_meta *m;
	int r;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size < sizeof(m->head))
		return -EBADMSG;
	m = calloc(1, ALIGN_TO(MAX((size_t)info.value_size, sizeof(*m)), 8UL));
	if (!m)
		return -ENOMEM;
	r = copy_value(fd, &info, m);
	if (r < 0) {
		free(m);
		return r;
	}
	*ret = m;
	*ret_size = info.value_size;
	return 0;
}

/* An earlier version had the bits of the stack in the rate, which no CPU reaches. */
static void read_rate(struct pp_spec *spec)
{
	if (spec->flags & PP_EVENT_USER_STACK || !spec->stack_user)
		return;
	spec->stack_user = 0;
	spec->max_rate = (1ULL << 48) - 1;
}

static int check_value(struct pp_meta *m, size_t size)
{
	if (m->head.magic != PP_META_MAGIC || m->head.version == 0)
		return -EBADMSG;
	if (m->head.version > PP_META_VERSION)
		return -EPROTONOSUPPORT;
	if (m->head.version < PP_META_VERSION)
		return -ESTALE;
	if (m->room > PP_CPUS_MAX + 1 || m->n_maps > m->room || m->n_sources > PP_TERMS_MAX ||
	    m->n_nodes > PP_FILTER_NODES_MAX || m->head.size != size ||
	    size != meta_size(&m->event, m->room, m->n_sources, m->n_nodes))
		return -EBADMSG;
	if (target_of(m) && pp_target_check(target_of(m), &m->event.spec) < 0)
		return -EBADMSG;
	read_rate(&m->event.spec);
	return pp_event_check(&m->event);
}

static int read_checked(int fd, struct pp_meta **ret)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	size_t size;
	int r;

	r = read_value(fd, &m, &size);
	if (r < 0)
		return r;
	/* Our earlier versions stored it only after the first name was deleted. */
	if (!m->event.origin)
		m->event.origin = m->event.id;
	r = check_value(m, size);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int meta_read(int fd, struct pp_event *ret)
{
	return meta_read_all(fd, ret, NULL, NULL, NULL, NULL);
}

static int take_maps(const struct pp_meta *m, struct meta_map **ret)
{
	struct meta_map *maps = calloc(MAX(m->n_maps, 1U), sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	memcpy(maps, m->rest, m->n_maps * sizeof(*maps));
	*ret = maps;
	return 0;
}

static int take_parsed(const struct pp_meta *m, struct pp_parsed **ret)
{
	_cleanup_free_ struct pp_parsed *parsed = calloc(1, sizeof(*parsed));
	const uint8_t *sources = m->rest + m->room * sizeof(struct meta_map);

	if (!parsed)
		return -ENOMEM;
	parsed->n_sources = m->n_sources;
	parsed->n_nodes = m->n_nodes;
	memcpy(parsed->sources, sources, m->n_sources * sizeof(parsed->sources[0]));
	memcpy(parsed->nodes, sources + m->n_sources * sizeof(parsed->sources[0]),
	       m->n_nodes * sizeof(parsed->nodes[0]));
	if (pp_parsed_check(parsed, true) < 0)
		return -EBADMSG;
	*ret = TAKE_PTR(parsed);
	return 0;
}

int meta_read_all(int fd, struct pp_event *ret, struct pp_parsed **ret_parsed,
		  struct meta_map **ret_maps, size_t *ret_n_maps, bool *ret_pending)
{
	_cleanup_free_ struct pp_parsed *parsed = NULL;
	_cleanup_free_ struct meta_map *maps = NULL;
	_cleanup_free_ struct pp_meta *m = NULL;
	int r;

	r = read_checked(fd, &m);
	if (r >= 0 && ret_parsed)
		r = take_parsed(m, &parsed);
	if (r >= 0 && ret_maps)
		r = take_maps(m, &maps);
	if (r < 0)
		return r;
	*ret = m->event;
	if (ret_parsed)
		*ret_parsed = TAKE_PTR(parsed);
	if (ret_maps) {
		*ret_maps = TAKE_PTR(maps);
		*ret_n_maps = m->n_maps;
	}
	if (ret_pending)
		*ret_pending = m->pending;
	return 0;
}

int meta_read_target(int fd, struct pp_msg_target *ret)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	int r = read_checked(fd, &m);

	if (r < 0)
		return r;
	*ret = target_of(m) ? *target_of(m) : (struct pp_msg_target){};
	return 0;
}

int meta_map_open(const struct meta_map *map)
{
	int fd = bpf_map_get_fd_by_id(map->id);

	return fd < 0 ? -errno : fd;
}

int meta_map_describe(int fd, uint32_t cpu, uint64_t bytes, uint64_t generation,
		      struct meta_map *ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	*ret = (struct meta_map){
		.cpu = cpu,
		.id = info.id,
		.bytes = bytes,
		.generation = generation,
	};
	return 0;
}

bool meta_is_strange(int r)
{
	return r == -ENOENT || r == -EACCES || r == -EBADMSG || r == -EPROTONOSUPPORT ||
	       r == -ESTALE;
}

/* ── changing ───────────────────────────────────────────────────────────────────────────── */

int meta_update(int fd, const struct pp_event *event, bool pending)
{
	return meta_update_maps(fd, event, NULL, 0, pending);
}

int meta_update_maps(int fd, const struct pp_event *event, const struct meta_map *maps,
		     size_t n_maps, bool pending)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	int r;

	r = read_checked(fd, &m);
	if (r >= 0 && n_maps > m->room)
		return -ENOSPC;
	if (r >= 0 && maps) {
		m->n_maps = n_maps;
		memcpy(m->rest, maps, n_maps * sizeof(*maps));
	}
	if (r >= 0)
		r = set_event(m, event, pending);
	return r < 0 ? r : write_value(fd, m);
}

/* Works with any version: the head is the same in all. */
int meta_mark_deleted(int fd)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	size_t size;
	int r;

	r = read_value(fd, &m, &size);
	if (r < 0)
		return r;
	m->head.deleted = 1;
	return write_value(fd, m);
}
