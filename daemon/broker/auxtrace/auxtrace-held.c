// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the list of the areas that the keeper has. Must not know which ones are wanted. */
#include <string.h>

#include "daemon/broker/auxtrace/auxtrace-internal.h"
#include "proto/macro.h"

/* Those of a keeper that has gone are still in the list while its successor lists its own. */
#define HELD_MAX (2 * PP_KEEP_AREAS_MAX)

static bool is_before(const struct pp_keep_area *area, uint64_t event, uint32_t cpu)
{
	return area->event != event ? area->event < event : area->cpu < cpu;
}

/* The index of that area, or where to insert it. */
static size_t place(const struct auxtrace *a, uint64_t event, uint32_t cpu)
{
	size_t low = 0, high = a->n_held;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_before(&a->held[middle].is, event, cpu))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct held_area *aux_held_find(const struct auxtrace *a, uint64_t event, uint32_t cpu)
{
	size_t i = place(a, event, cpu);

	if (i == a->n_held || a->held[i].is.event != event || a->held[i].is.cpu != cpu)
		return NULL;
	return &a->held[i];
}

struct held_area *aux_held_from(const struct auxtrace *a, uint64_t event)
{
	size_t i = place(a, event, 0);

	return i < a->n_held ? &a->held[i] : NULL;
}

static struct held_area *insert(struct auxtrace *a, const struct pp_keep_area *area)
{
	size_t i = place(a, area->event, area->cpu);
	struct held_area *more;

	if (a->n_held >= HELD_MAX)
		return NULL;
	more = reallocarray(a->held, a->n_held + 1, sizeof(*more));
	if (!more)
		return NULL;
	a->held = more;
	memmove(more + i + 1, more + i, (a->n_held - i) * sizeof(*more));
	more[i] = (struct held_area){ .is = *area };
	a->n_held++;
	return &more[i];
}

struct held_area *aux_held_put(struct auxtrace *a, const struct pp_keep_area *area)
{
	struct held_area *held = aux_held_find(a, area->event, area->cpu) ?: insert(a, area);

	if (!held)
		return NULL;
	held->is = *area;
	held->listed = true;
	return held;
}

void aux_held_drop(struct auxtrace *a, uint64_t event, uint32_t cpu)
{
	struct held_area *held = aux_held_find(a, event, cpu);

	if (!held)
		return;
	a->n_held--;
	memmove(held, held + 1, (size_t)(a->held + a->n_held - held) * sizeof(*held));
}

void aux_held_forget(struct auxtrace *a)
{
	a->known = false;
	a->listed = (struct pp_keep_area){};
	for (size_t i = 0; i < a->n_held; i++)
		a->held[i].listed = false;
}

bool aux_held_list(struct auxtrace *a, const struct pp_keep_area *areas, size_t n, bool more)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_before(&a->listed, areas[i].event, areas[i].cpu) ||
		    !aux_held_put(a, &areas[i]))
			return false;
		a->listed = areas[i];
	}
	a->known = !more || n == 0;
	if (!a->known)
		return true;
	for (size_t i = 0; i < a->n_held; i++)
		if (a->held[i].listed)
			a->held[left++] = a->held[i];
	a->n_held = left;
	return true;
}
