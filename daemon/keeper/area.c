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
	/* While the area is unmapped no event beside it may take a sample of it: the kernel has stopped the
	 * PMU then, and would warn of a part that is missing (perf_aux_sample_output(), 6.1 to 7.3). */
	if (a->n_beside && a->fd >= 0)
		area_enable(a, false);
	if (a->aux)
		munmap((void *)a->aux, a->size);
	if (a->ring)
		munmap(a->ring, a->page + a->data);
	if (a->samples)
		munmap((void *)a->samples, a->page + a->size);
	for (uint32_t i = 0; i < a->n_beside; i++)
		close_fd(a->beside[i]);
	close_fd(a->fd);
	free(a->beside);
	free(a->ids);
	free(a);
}

void area_cleanup(struct area **a)
{
	area_free(*a);
}

/* A PMU without AUX areas fails here, as nothing else says which ones have them. */
static int map_area(struct area *a)
{
	struct perf_event_mmap_page *page;
	void *p;

	p = mmap(NULL, a->page + a->data, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	a->ring = p;
	page = area_control(a);
	if (page->data_offset != a->page || page->data_size != a->data)
		return -EBADMSG;
	page->aux_offset = a->page + a->data;
	page->aux_size = a->size;
	p = mmap(NULL, a->size, PROT_READ, MAP_SHARED, a->fd, (off_t)page->aux_offset);
	if (p == MAP_FAILED)
		return -errno;
	a->aux = p;
	return 0;
}

/* A plain file could be cut short under us, so the descriptor must be a perf event. */
static int take_event(int *fd, int *ret, uint64_t *ret_id)
{
	*ret = TAKE_FD(*fd);
	return ioctl(*ret, PERF_EVENT_IOC_ID, ret_id) < 0 ? -EBADMSG : 0;
}

static int take_group(struct area *a, int *fds, uint32_t n)
{
	int r;

	a->beside = calloc(n, sizeof(*a->beside));
	a->ids = calloc(n, sizeof(*a->ids));
	if (!a->beside || !a->ids)
		return -ENOMEM;
	for (; a->n_beside < n; a->n_beside++) {
		uint32_t i = a->n_beside;

		r = take_event(&fds[i], &a->beside[i], &a->ids[i]);
		if (r < 0) {
			close_fd(a->beside[i]);
			return r;
		}
	}
	return 0;
}

/* One ring for all of the group, mapped read-only: so it overwrites itself. */
static int map_samples(struct area *a)
{
	void *p = mmap(NULL, a->page + a->size, PROT_READ, MAP_SHARED, a->beside[0], 0);

	if (p == MAP_FAILED)
		return -errno;
	a->samples = p;
	for (uint32_t i = 1; i < a->n_beside; i++)
		if (ioctl(a->beside[i], PERF_EVENT_IOC_SET_OUTPUT, a->beside[0]) < 0)
			return -errno;
	return 0;
}

int area_new(uint64_t event, const struct pp_keep_cpu *cpu, uint64_t size, int *fds,
	     uint32_t n_beside, struct area **ret)
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
	r = take_event(&fds[0], &a->fd, &id);
	if (r >= 0 && n_beside > 0)
		r = take_group(a, fds + 1, n_beside);
	if (r >= 0)
		r = map_area(a);
	if (r >= 0 && n_beside > 0)
		r = map_samples(a);
	if (r < 0)
		return r;
	a->began = pp_clock_ns(CLOCK_MONOTONIC);
	*ret = TAKE_PTR(a);
	return 0;
}

/* The times are those that a copy says, so the longer ones: from before it stops until it goes on. */
int area_enable(struct area *a, bool on)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

	if (ioctl(a->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
		return -errno;
	if (!on && !a->stopped)
		a->stopped = now;
	if (on && a->stopped) {
		a->untraced += pp_clock_ns(CLOCK_MONOTONIC) - a->stopped;
		a->stopped = 0;
	}
	return 0;
}
