/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which CPUs are sending to the broker (daemon/engine/bpf/send.bpf.h), and whether there is room. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* As if a reader had gone wrong: the ring buffer has no room. Returns the producer's position from
 * then on: until then any system call of the test may send. */
static inline uint64_t no_room_for_wakeups(int fd)
{
	size_t page = (size_t)getpagesize();
	uint64_t *consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t *produced = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	uint64_t position;

	ck_assert(consumed != MAP_FAILED && produced != MAP_FAILED);
	/* The kernel takes what is more than a buffer away, in either direction, for full (6.1 to 7.x). */
	*(volatile uint64_t *)consumed = *(volatile uint64_t *)produced + 2 * page;
	position = *(volatile uint64_t *)produced;
	munmap(consumed, page);
	munmap(produced, page);
	return position;
}
