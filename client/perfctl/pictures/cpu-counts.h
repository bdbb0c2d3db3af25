/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A number for each CPU, of which few are not 0. A file can have as many events as records, each
 * with the highest possible CPU, so the numbers are stored in pages. Does not know what is counted.
 */
#pragma once

#include <stdint.h>

#define COUNTED_CPUS 8192 /* as many as Linux can have */

struct cpu_counts {
	uint64_t **pages; /* NULL: all are 0 */
};

/* The CPU's number, for changing; cpu < COUNTED_CPUS. NULL: no memory. */
uint64_t *cpu_counts_at(struct cpu_counts *c, uint32_t cpu);
uint64_t cpu_counts_get(const struct cpu_counts *c, uint32_t cpu);
void cpu_counts_done(struct cpu_counts *c);
