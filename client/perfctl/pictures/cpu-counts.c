// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/pictures/cpu-counts.h"

#include <stdlib.h>

#define PAGE_CPUS 64
#define PAGES (COUNTED_CPUS / PAGE_CPUS)

uint64_t *cpu_counts_at(struct cpu_counts *c, uint32_t cpu)
{
	uint64_t **page;

	if (!c->pages)
		c->pages = calloc(PAGES, sizeof(*c->pages));
	if (!c->pages)
		return NULL;
	page = &c->pages[cpu / PAGE_CPUS];
	if (!*page)
		*page = calloc(PAGE_CPUS, sizeof(**page));
	return *page ? *page + cpu % PAGE_CPUS : NULL;
}

uint64_t cpu_counts_get(const struct cpu_counts *c, uint32_t cpu)
{
	const uint64_t *page = c->pages && cpu < COUNTED_CPUS ? c->pages[cpu / PAGE_CPUS] : NULL;

	return page ? page[cpu % PAGE_CPUS] : 0;
}

void cpu_counts_done(struct cpu_counts *c)
{
	for (size_t i = 0; c->pages && i < PAGES; i++)
		free(c->pages[i]);
	free(c->pages);
	*c = (struct cpu_counts){};
}
