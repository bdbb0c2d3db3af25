// SPDX-License-Identifier: LGPL-2.1-or-later
/* All AUX areas, by event and CPU. */
#include "daemon/keeper/areas.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/keeper/area.h"
#include "proto/macro.h"

/* Mapping and unmapping take the kernel up to 100 ms for one area, and there are hundreds. */
static void be_busy(const struct areas *a)
{
	a->busy.call(a->busy.context);
}

void areas_init(struct areas *a, void (*busy)(void *context), void *context)
{
	*a = (struct areas){ .busy = { busy, context } };
}

void areas_done(struct areas *a)
{
	while (a->n) {
		area_free(a->area[--a->n]);
		be_busy(a);
	}
	free(a->area);
	a->area = NULL;
}

static bool is_before(const struct area *a, uint64_t event, uint32_t cpu)
{
	return a->event != event ? a->event < event : a->cpu < cpu;
}

/* The index of that area, or where to insert it. */
static size_t place(const struct areas *a, uint64_t event, uint32_t cpu)
{
	size_t low = 0, high = a->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_before(a->area[middle], event, cpu))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct area *find(const struct areas *a, uint64_t event, uint32_t cpu)
{
	size_t i = place(a, event, cpu);

	return i < a->n && a->area[i]->event == event && a->area[i]->cpu == cpu ? a->area[i] : NULL;
}

static void remove_at(struct areas *a, size_t i)
{
	area_free(a->area[i]);
	be_busy(a);
	a->n--;
	memmove(a->area + i, a->area + i + 1, (a->n - i) * sizeof(*a->area));
}

static int insert_at(struct areas *a, size_t i, struct area *area)
{
	struct area **more = realloc(a->area, (a->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	a->area = more;
	memmove(more + i + 1, more + i, (a->n - i) * sizeof(*more));
	more[i] = area;
	a->n++;
	return 0;
}

int areas_put(struct areas *a, uint64_t event, const struct pp_keep_cpu *cpu, uint64_t aux_size,
	      uint32_t paused, int *fds, uint32_t n_beside)
{
	_cleanup_(area_cleanup) struct area *new = NULL;
	size_t i = place(a, event, cpu->cpu);
	int r;

	if (find(a, event, cpu->cpu))
		remove_at(a, i); /* it is dead: no PMU traces into two areas of a CPU */
	if (a->n >= PP_KEEP_AREAS_MAX)
		return -ENOSPC;
	r = area_new(event, cpu, aux_size, fds, n_beside, &new);
	be_busy(a);
	if (r < 0)
		return r;
	new->paused = paused;
	new->stopped = paused ? new->began : 0;
	r = paused ? 0 : area_enable(new, true);
	if (r >= 0)
		r = insert_at(a, i, new);
	if (r < 0)
		return r;
	new = NULL;
	return 0;
}

int areas_pause(struct areas *a, uint64_t event, uint32_t pause)
{
	int r = 0;

	for (size_t i = place(a, event, 0); i < a->n && a->area[i]->event == event; i++) {
		int one = area_enable(a->area[i], !pause);

		if (one >= 0)
			a->area[i]->paused = pause;
		else
			r = one;
		be_busy(a);
	}
	return r;
}

void areas_drop(struct areas *a, uint64_t event, uint32_t cpu)
{
	bool all = cpu == UINT32_MAX;
	size_t i = place(a, event, all ? 0 : cpu);

	while (i < a->n && a->area[i]->event == event && (all || a->area[i]->cpu == cpu))
		remove_at(a, i);
}

void areas_held(const struct areas *a, uint64_t event, uint32_t cpu, struct pp_keep_answer *ret)
{
	size_t i = event ? place(a, event, cpu) : 0;

	if (event && find(a, event, cpu))
		i++;
	for (; i < a->n; i++) {
		const struct area *area = a->area[i];

		if (ret->n_areas == PP_KEEP_CPUS) {
			ret->more = 1;
			return;
		}
		ret->areas[ret->n_areas++] = (struct pp_keep_area){
			.event = area->event,
			.generation = area->generation,
			.aux_size = area->size,
			.cpu = area->cpu,
			.paused = area->paused,
		};
	}
}

int areas_take(struct areas *a, uint64_t event, uint32_t cpu, int *ret_fd, uint64_t *ret_size)
{
	struct area *area = find(a, event, cpu);

	return area ? area_copy(area, &a->busy, ret_fd, ret_size) : -ENODATA;
}
