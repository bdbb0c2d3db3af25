/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which CPUs are sending to the broker (daemon/engine/bpf/send.bpf.h). */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "tests/unit/needs.h"

static inline int sending_new(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "sending", 4, 8, 1, NULL);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* As if each CPU were in the middle of it (1), or no more (0). */
static inline void sending_set(int fd, uint64_t to)
{
	size_t n = (size_t)libbpf_num_possible_cpus();
	uint64_t *words = calloc(n, sizeof(*words));
	uint32_t zero = 0;

	for (size_t i = 0; i < n; i++)
		words[i] = to;
	ck_assert_int_eq(bpf_map_update_elem(fd, &zero, words, BPF_ANY), 0);
	free(words);
}
