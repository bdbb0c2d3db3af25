// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the rings of an event. Knows neither pins nor programs. */
#include "daemon/engine/rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "daemon/cpus.h"
#include "proto/macro.h"
#include "proto/ring.h"

uint32_t rings_header_size(size_t format_size)
{
	return ALIGN_TO(PP_RING_FORMAT_OFFSET + format_size, (size_t)PP_RING_PAGE);
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
	h->event_id = event->id;
	h->sample_type = event->sample_type;
	h->clockid = CLOCK_MONOTONIC;
	h->recorder = event->recorder;
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
	uint64_t size = pp_ring_size(event->header_size, event->spec.data_size, event->spill_size);
	_cleanup_close_ int fd = -EBADF;
	void *header;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_ring", 4, size, 1, &opts);
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
static int fill_slots(const struct rings *r)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t n = r->n;

	return bpf_map_update_batch(r->outer, r->cpu, r->fd, &n, &opts) < 0 ? -errno : 0;
}

static int allocate(struct rings *r, const struct pp_event *event)
{
	r->cpu = calloc(PP_CPUS_MAX, sizeof(*r->cpu));
	r->fd = calloc(PP_CPUS_MAX, sizeof(*r->fd));
	if (!r->cpu || !r->fd)
		return -ENOMEM;
	PP_CPUMASK_FOREACH(cpu, &event->rings)
	{
		r->cpu[r->n] = cpu;
		r->fd[r->n++] = -EBADF;
	}
	return r->n ? 0 : -EINVAL;
}

int rings_create(const struct pp_event *event, const struct perf_event_attr *attr,
		 const struct tracepoint *tp, struct rings *ret)
{
	_cleanup_(rings_done) struct rings r = { .outer = -EBADF };
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int possible = pp_cpus_possible(), err;

	if (possible < 0)
		return possible;
	err = allocate(&r, event);
	for (unsigned i = 0; err >= 0 && i < r.n; i++)
		err = create_ring(event, r.cpu[i], attr, tp, &r.fd[i]);
	if (err < 0)
		return err;
	opts.inner_map_fd = r.fd[0];
	r.outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_rings", 4, 4, possible, &opts);
	if (r.outer < 0)
		return r.outer;
	err = fill_slots(&r);
	if (err < 0)
		return err;
	*ret = r;
	r = (struct rings){ .outer = -EBADF };
	return 0;
}

void rings_done(struct rings *r)
{
	for (unsigned i = 0; i < r->n; i++)
		close_fd(r->fd[i]);
	free(r->fd);
	free(r->cpu);
	close_fd(r->outer);
	*r = (struct rings){ .outer = -EBADF };
}
