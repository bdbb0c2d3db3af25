// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the rings of an event. Knows neither pins nor programs. */
#include "daemon/engine/event/rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "daemon/cpus.h"
#include "daemon/engine/registry/cpu-states.h"
#include "proto/macro.h"
#include "proto/ring.h"

uint32_t rings_header_size(size_t format_size)
{
	return ALIGN_TO(PP_RING_FORMAT_OFFSET + format_size, (size_t)PP_RING_PAGE);
}

uint64_t rings_pages(uint64_t bytes)
{
	return ALIGN_TO(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

static uint64_t ring_size(const struct pp_event *event)
{
	return pp_ring_size(event->header_size, pp_spec_ring_data(&event->spec), event->spill_size);
}

uint64_t rings_memory(const struct pp_event *event)
{
	uint64_t n = pp_cpumask_count(&event->rings);

	return n * (rings_pages(ring_size(event)) + pp_spec_aux_memory(&event->spec));
}

static void read_boot_id(uint8_t ret[16])
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned byte;

	memset(ret, 0, 16);
	for (size_t i = 0; f && i < 16; i++) {
		if (fscanf(f, i == 4 || i == 6 || i == 8 || i == 10 ? "-%2x" : "%2x", &byte) != 1)
			return;
		ret[i] = byte;
	}
}

static void fill_header(struct pp_ring_header *h, const struct pp_event *event, unsigned cpu,
			const struct perf_event_attr *attr, const struct tracepoint *tp)
{
	h->magic = PP_RING_MAGIC;
	h->version = PP_RING_VERSION;
	h->header_size = event->header_size;
	h->data_size = pp_spec_ring_data(&event->spec);
	h->spill_size = event->spill_size;
	h->cpu = cpu;
	h->event_id = event->origin;
	h->sample_type = event->sample_type;
	h->clockid = CLOCK_MONOTONIC;
	h->recorder = event->recorder;
	h->n_sources = event->n_sources;
	h->set = event->set;
	h->created = event->created;
	h->created_mono = event->created_mono;
	read_boot_id(h->boot_id);
	memcpy(h->ns, event->spec.ns, sizeof(h->ns));
	memcpy(h->name, event->spec.name, sizeof(h->name));
	memcpy(h->event, event->spec.event, sizeof(h->event));
	h->attr_size = sizeof(*attr);
	memcpy(h->attr, attr, sizeof(*attr));
	if (tp) {
		h->format_size = tp->format_size;
		memcpy((char *)h + PP_RING_FORMAT_OFFSET, tp->format, tp->format_size);
	}
}

/* Makes one CPU's ring. The writable mapping must be gone before the map can be frozen (EBUSY). */
static int create_ring(const struct pp_event *event, unsigned cpu,
		       const struct perf_event_attr *attr, const struct tracepoint *tp, int *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd = -EBADF;
	void *header;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_ring", 4, ring_size(event), 1, &opts);
	if (fd < 0)
		return fd;
	header = mmap(NULL, event->header_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return -errno;
	fill_header(header, event, cpu, attr, tp);
	munmap(header, event->header_size);
	if (bpf_map_freeze(fd) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/* Fills all slots in one call: separate calls wait for a grace period each. */
int rings_fill(const struct rings *rings)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t n = rings->n;

	return bpf_map_update_batch(rings->outer, rings->cpu, rings->fd, &n, &opts) < 0 ? -errno
											: 0;
}

static int allocate(struct rings *rings, size_t n)
{
	rings->cpu = calloc(n, sizeof(*rings->cpu));
	rings->fd = calloc(n, sizeof(*rings->fd));
	rings->generation = calloc(n, sizeof(*rings->generation));
	return rings->cpu && rings->fd && rings->generation ? 0 : -ENOMEM;
}

static void append(struct rings *rings, unsigned cpu, int fd, uint64_t generation)
{
	rings->cpu[rings->n] = cpu;
	rings->fd[rings->n] = fd;
	rings->generation[rings->n++] = generation;
}

static int create_rings(struct rings *rings, const struct pp_event *event,
			const struct pp_cpumask *cpus, const struct perf_event_attr *attr,
			const struct tracepoint *tp)
{
	int fd = -EBADF, r = allocate(rings, PP_CPUS_MAX);

	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		if (r >= 0)
			r = create_ring(event, cpu, attr, tp, &fd);
		if (r >= 0)
			append(rings, cpu, fd, CPU_STATES_NONE);
	}
	return r < 0 ? r : rings->n ? 0 : -EINVAL;
}

int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret)
{
	_cleanup_(rings_done) struct rings rings = { .outer = -EBADF };
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int possible = pp_cpus_possible(), err;

	if (possible < 0)
		return possible;
	err = create_rings(&rings, event, &event->rings, attr, tp);
	if (err < 0)
		return err;
	opts.inner_map_fd = rings.fd[0];
	rings.outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_rings", 4, 4, possible, &opts);
	if (rings.outer < 0)
		return rings.outer;
	err = rings_fill(&rings);
	if (err < 0)
		return err;
	*ret = rings;
	rings = (struct rings){ .outer = -EBADF };
	return 0;
}

int rings_open(int outer, const struct meta_map *maps, size_t n, struct rings *ret)
{
	_cleanup_(rings_done) struct rings rings = { .outer = outer };
	int r = allocate(&rings, MAX(n, (size_t)1));

	for (size_t i = 0; r >= 0 && i < n; i++) {
		int fd;

		if (maps[i].cpu == UINT32_MAX) /* the catalog */
			continue;
		fd = r = meta_map_open(&maps[i]);
		if (fd >= 0)
			append(&rings, maps[i].cpu, fd, maps[i].generation);
	}
	if (r < 0)
		return r;
	*ret = rings;
	rings = (struct rings){ .outer = -EBADF };
	return 0;
}

int rings_open_like(int outer, const struct rings *like, struct rings *ret)
{
	_cleanup_(rings_done) struct rings rings = { .outer = outer };
	int r = allocate(&rings, MAX(like->n, 1U));

	for (unsigned i = 0; r >= 0 && i < like->n; i++) {
		uint32_t id;

		if (bpf_map_lookup_elem(outer, &like->cpu[i], &id) < 0)
			return -errno;
		r = bpf_map_get_fd_by_id(id);
		if (r >= 0)
			append(&rings, like->cpu[i], r, like->generation[i]);
	}
	if (r < 0)
		return r;
	*ret = rings;
	rings = (struct rings){ .outer = -EBADF };
	return 0;
}

/* Both are sorted. */
static void merge(const struct rings *a, const struct rings *b, struct rings *ret)
{
	unsigned i = 0, k = 0;

	while (i < a->n || k < b->n) {
		const struct rings *from = i < a->n && (k == b->n || a->cpu[i] < b->cpu[k]) ? a : b;
		unsigned at = from == a ? i++ : k++;

		append(ret, from->cpu[at], from->fd[at], from->generation[at]);
	}
}

int rings_add(const struct pp_event *event, const struct pp_cpumask *cpus,
	      const struct perf_event_attr *attr, const struct tracepoint *tp, struct rings *rings)
{
	_cleanup_(rings_done) struct rings more = { .outer = -EBADF }, all = { .outer = -EBADF };
	int r = create_rings(&more, event, cpus, attr, tp);

	if (r >= 0)
		r = allocate(&all, rings->n + more.n);
	if (r < 0)
		return r;
	merge(rings, &more, &all);
	all.outer = TAKE_FD(rings->outer);
	rings->n = more.n = 0; /* `all` has them now */
	rings_done(rings);
	*rings = all;
	all = (struct rings){ .outer = -EBADF };
	return 0;
}

void rings_empty(const struct rings *rings, const struct pp_cpumask *cpus)
{
	PP_CPUMASK_FOREACH(cpu, cpus)
	bpf_map_delete_elem(rings->outer, &cpu);
}

/* After an update of a map of maps the kernel waits until no program is left that could have seen
 * the old value (maybe_wait_bpf_programs()): one grace period of RCU. */
int rings_settle(const struct rings *rings)
{
	if (rings->n == 0)
		return 0;
	return bpf_map_update_elem(rings->outer, &rings->cpu[0], &rings->fd[0], BPF_ANY) < 0
		       ? -errno
		       : 0;
}

int rings_maps(const struct rings *rings, const struct pp_event *event, struct meta_map *ret)
{
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < rings->n; i++)
		r = meta_map_describe(rings->fd[i], rings->cpu[i], rings_pages(ring_size(event)),
				      rings->generation[i], &ret[i]);
	return r;
}

void rings_done(struct rings *rings)
{
	for (unsigned i = 0; i < rings->n; i++)
		close_fd(rings->fd[i]);
	free(rings->fd);
	free(rings->cpu);
	free(rings->generation);
	close_fd(rings->outer);
	*rings = (struct rings){ .outer = -EBADF };
}
