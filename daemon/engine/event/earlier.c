// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the counts of rings, and stores them. See earlier.h. */
#include "daemon/engine/event/earlier.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include "daemon/cpus.h"
#include "daemon/engine/bpf/tree.h"
#include "proto/macro.h"
#include "proto/ring.h"

int earlier_create(void)
{
	int possible = pp_cpus_possible();

	if (possible < 0)
		return possible;
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_earlier", 4, sizeof(struct tree_counts),
			      possible, NULL);
}

static int add_ring(int fd, struct tree_counts *c)
{
	const struct pp_ring_header *h = mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (h == MAP_FAILED)
		return -errno;
	c->records += __atomic_load_n(&h->live.records, __ATOMIC_RELAXED);
	c->bytes -= __atomic_load_n(&h->live.head, __ATOMIC_RELAXED);
	c->limited += __atomic_load_n(&h->limit.limited, __ATOMIC_RELAXED);
	c->missed += __atomic_load_n(&h->live.missed, __ATOMIC_RELAXED);
	c->idle += __atomic_load_n(&h->live.idle, __ATOMIC_RELAXED);
	munmap((void *)h, PP_RING_PAGE);
	return 0;
}

int earlier_fill(int map, const struct rings *rings, int before)
{
	for (unsigned i = 0; i < rings->n; i++) {
		struct tree_counts c = {};
		int r;

		if (before >= 0 && bpf_map_lookup_elem(before, &rings->cpu[i], &c) < 0)
			return -errno;
		r = add_ring(rings->fd[i], &c);
		if (r < 0)
			return r;
		if (bpf_map_update_elem(map, &rings->cpu[i], &c, BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}
