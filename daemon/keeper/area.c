// SPDX-License-Identifier: LGPL-2.1-or-later
/* An AUX area is mapped, and its tracing starts and stops. */
#include "daemon/keeper/area.h"

#include <sys/ioctl.h>

#include "daemon/order.h"
#include "proto/clock.h"
#include "proto/macro.h"

void area_free(struct area *a)
{
	if (!a)
		return;
	if (a->aux)
		munmap((void *)a->aux, a->size);
	if (a->ring)
		munmap(a->ring, a->page + a->data);
	close_fd(a->fd);
	free(a);
}

void area_cleanup(struct area **a)
{
	area_free(*a);
}

/* A PMU without AUX areas fails here, as nothing else says which ones have them. */
static int map_area(struct area *a, int fd)
{
	struct perf_event_mmap_page *page;
	void *p;

	p = mmap(NULL, a->page + a->data, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	a->ring = p;
	page = area_control(a);
	if (page->data_offset != a->page || page->data_size != a->data)
		return -EBADMSG;
	page->aux_offset = a->page + a->data;
	page->aux_size = a->size;
	p = mmap(NULL, a->size, PROT_READ, MAP_SHARED, fd, (off_t)page->aux_offset);
	if (p == MAP_FAILED)
		return -errno;
	a->aux = p;
	return 0;
}

int area_new(uint64_t event, const struct pp_keep_cpu *cpu, uint64_t size, int fd,
	     struct area **ret)
{
	_cleanup_(area_cleanup) struct area *a = calloc(1, sizeof(*a));
	uint64_t id;
	int r;

	if (!a)
		return -ENOMEM;
	a->fd = -EBADF;
	a->event = event;
	a->cpu = cpu->cpu;
	a->generation = cpu->generation;
	a->page = (size_t)sysconf(_SC_PAGESIZE);
	a->data = pp_aux_ring_data(a->page);
	a->size = size;
	if (size < a->page || size > PP_AUX_SIZE_MAX || size & (size - 1))
		return -EBADMSG;
	/* A plain file could be cut short under us, so the descriptor must be a perf event. */
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return -EBADMSG;
	r = map_area(a, fd);
	if (r < 0)
		return r;
	a->began = pp_clock_ns(CLOCK_MONOTONIC);
	*ret = TAKE_PTR(a);
	return 0;
}

int area_enable(const struct area *a, bool on)
{
	return ioctl(a->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno
											: 0;
}
