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
	return pp_ring_size(event->header_size, event->spec.data_size, event->spill_size);
}

uint64_t rings_memory(const struct pp_event *event)
{
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(event->rings.bits); i++)
		n += __builtin_popcountll(event->rings.bits[i]);
	return n * rings_pages(ring_size(event));
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
	h->data_size = event->spec.data_size;
	h->spill_size = event->spill_size;
	h->cpu = cpu;
	h->event_id = pp_event_origin(event);
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

/* One CPU's ring. The writable mapping must be gone before the map can be frozen (EBUSY). */
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

/* All slots in one call: each alone waits for a grace period of its own. */
int rings_fill(const struct rings *r)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t n = r->n;

	return bpf_map_update_batch(r->outer, r->cpu, r->fd, &n, &opts) < 0 ? -errno : 0;
}

static int allocate(struct rings *r, size_t n)
{
	r->cpu = calloc(n, sizeof(*r->cpu));
	r->fd = calloc(n, sizeof(*r->fd));
	r->generation = calloc(n, sizeof(*r->generation));
	return r->cpu && r->fd && r->generation ? 0 : -ENOMEM;
}

static void append(struct rings *r, unsigned cpu, int fd, uint64_t generation)
{
	r->cpu[r->n] = cpu;
	r->fd[r->n] = fd;
	r->generation[r->n++] = generation;
}

static int create_rings(struct rings *r, const struct pp_event *event,
			const struct pp_cpumask *cpus, const struct perf_event_attr *attr,
			const struct tracepoint *tp)
{
	int fd = -EBADF, err = allocate(r, PP_CPUS_MAX);

	PP_CPUMASK_FOREACH(cpu, cpus)
	{
		if (err >= 0)
			err = create_ring(event, cpu, attr, tp, &fd);
		if (err >= 0)
			append(r, cpu, fd, CPU_STATES_NONE);
	}
	return err < 0 ? err : r->n ? 0 : -EINVAL;
}

int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret)
{
	_cleanup_(rings_done) struct rings r = { .outer = -EBADF };
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int possible = pp_cpus_possible(), err;

	if (possible < 0)
		return possible;
	err = create_rings(&r, event, &event->rings, attr, tp);
	if (err < 0)
		return err;
	opts.inner_map_fd = r.fd[0];
	r.outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_rings", 4, 4, possible, &opts);
	if (r.outer < 0)
		return r.outer;
	err = rings_fill(&r);
	if (err < 0)
		return err;
	*ret = r;
	r = (struct rings){ .outer = -EBADF };
	return 0;
}

int rings_open(int outer, const struct meta_map *maps, size_t n, struct rings *ret)
{
	_cleanup_(rings_done) struct rings r = { .outer = outer };
	int err = allocate(&r, MAX(n, (size_t)1));

	for (size_t i = 0; err >= 0 && i < n; i++) {
		int fd;

		if (maps[i].cpu == UINT32_MAX) /* the catalog */
			continue;
		fd = err = meta_map_open(&maps[i]);
		if (fd >= 0)
			append(&r, maps[i].cpu, fd, maps[i].generation);
	}
	if (err < 0)
		return err;
	*ret = r;
	r = (struct rings){ .outer = -EBADF };
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
	      const struct perf_event_attr *attr, const struct tracepoint *tp, struct rings *r)
{
	_cleanup_(rings_done) struct rings more = { .outer = -EBADF }, all = { .outer = -EBADF };
	int err = create_rings(&more, event, cpus, attr, tp);

	if (err >= 0)
		err = allocate(&all, r->n + more.n);
	if (err < 0)
		return err;
	merge(r, &more, &all);
	all.outer = TAKE_FD(r->outer);
	r->n = more.n = 0; /* theirs no more */
	rings_done(r);
	*r = all;
	all = (struct rings){ .outer = -EBADF };
	return 0;
}

void rings_empty(const struct rings *r, const struct pp_cpumask *cpus)
{
	PP_CPUMASK_FOREACH(cpu, cpus)
	bpf_map_delete_elem(r->outer, &cpu);
}

/* Whoever puts a map into a map of maps gets the control back when no program is left that could
 * have seen what was there before (maybe_wait_bpf_programs()): one grace period of RCU. */
int rings_settle(const struct rings *r)
{
	if (r->n == 0)
		return 0;
	return bpf_map_update_elem(r->outer, &r->cpu[0], &r->fd[0], BPF_ANY) < 0 ? -errno : 0;
}

int rings_maps(const struct rings *r, const struct pp_event *event, struct meta_map *ret)
{
	int err = 0;

	for (unsigned i = 0; err >= 0 && i < r->n; i++)
		err = meta_map_describe(r->fd[i], r->cpu[i], rings_pages(ring_size(event)),
					r->generation[i], &ret[i]);
	return err;
}

void rings_done(struct rings *r)
{
	for (unsigned i = 0; i < r->n; i++)
		close_fd(r->fd[i]);
	free(r->fd);
	free(r->cpu);
	free(r->generation);
	close_fd(r->outer);
	*r = (struct rings){ .outer = -EBADF };
}
