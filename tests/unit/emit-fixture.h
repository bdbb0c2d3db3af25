/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rings for the recorders' tests: real maps, like the engine's, with only those header fields that
 * the programs read; and a walk over their records.
 */
#pragma once

#include <bpf/bpf.h>
#undef fail /* an old macro of check; we use the name */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/recorders/recorder.h"
#include "proto/macro.h"
#include "proto/ring.h"
#include "tests/unit/needs.h"
#include "tests/unit/sending.h"

#define FIXTURE_CPUS 8 /* CPUs with a ring: the first online ones */

struct fixture {
	int outer, wakeups, sending;
	unsigned cpu[FIXTURE_CPUS], n;
	int fd[FIXTURE_CPUS];
	struct pp_ring_header *ring[FIXTURE_CPUS];
	size_t size;
	struct recorder_target target;
};

static inline void fixture_done(struct fixture *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		munmap(x->ring[i], x->size);
		close(x->fd[i]);
	}
	close(x->outer);
	close(x->wakeups);
	close(x->sending);
}

/* Makes a ring for each of the first CPUs; direct: the programs may use their addresses. */
static inline void fixture_make(struct fixture *x, uint64_t data_size, uint32_t spill, bool direct)
{
	LIBBPF_OPTS(bpf_map_create_opts, inner, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	struct pp_cpumask online;

	*x = (struct fixture){ .size = pp_ring_size(PP_RING_PAGE, data_size, spill) };
	ck_assert_int_eq(pp_cpus_read("online", &online), 0);
	PP_CPUMASK_FOREACH(cpu, &online)
	{
		if (x->n == FIXTURE_CPUS)
			break;
		x->cpu[x->n] = cpu;
		x->fd[x->n] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ring", 4, x->size, 1, &inner);
		ck_assert_int_ge(x->fd[x->n], 0);
		x->ring[x->n] =
			mmap(NULL, x->size, PROT_READ | PROT_WRITE, MAP_SHARED, x->fd[x->n], 0);
		ck_assert_ptr_ne(x->ring[x->n], MAP_FAILED);
		x->ring[x->n]->cpu = cpu;
		x->n++;
	}
	outer.inner_map_fd = x->fd[0];
	x->outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", 4, 4, 4096, &outer);
	ck_assert_int_ge(x->outer, 0);
	for (unsigned i = 0; i < x->n; i++)
		ck_assert_int_eq(bpf_map_update_elem(x->outer, &x->cpu[i], &x->fd[i], 0), 0);
	x->wakeups = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakeups", 0, 0, 4096, NULL);
	ck_assert_int_ge(x->wakeups, 0);
	x->sending = sending_new();
	x->target = (struct recorder_target){
		.fd = x->outer,
		.header_size = PP_RING_PAGE,
		.data_size = data_size,
		.spill_size = spill,
		.cpu = x->cpu,
		.ring_fd = x->fd,
		.n = direct ? x->n : 0,
		.wakeup_fd = -EBADF,
		.sending_fd = x->sending,
		.ringless_fd = -EBADF,
		.event_id = 4711,
	};
}

/* The record that begins at this position; NULL: it is older than the ring, or overwritten. */
static inline const struct perf_event_header *fixture_record(const struct fixture *x, unsigned i,
							     uint64_t position)
{
	const uint8_t *data = (const uint8_t *)x->ring[i] + x->target.header_size;
	const struct perf_event_header *h =
		(const void *)(data + (position & (x->target.data_size - 1)));

	if (!position || position - x->ring[i]->live.head >= x->target.data_size ||
	    position + h->size - x->ring[i]->live.head > x->target.data_size)
		return NULL;
	return h;
}

/* Calls f for each record of all rings, newest first. Returns how many there were. */
static inline uint64_t fixture_walk(const struct fixture *x,
				    void (*f)(const struct perf_event_header *, void *), void *data)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < x->n; i++) {
		const struct perf_event_header *h;

		ck_assert_uint_eq(x->ring[i]->live.head, x->ring[i]->live.reserve);
		ck_assert_uint_eq(x->ring[i]->live.nest, 0);
		for (uint64_t at = x->ring[i]->live.head; (h = fixture_record(x, i, at));
		     at += h->size) {
			ck_assert(h->type == PERF_RECORD_SAMPLE);
			ck_assert(h->size != 0 && h->size % 8 == 0);
			ck_assert(h->size <= x->target.spill_size);
			if (f)
				f(h, data);
			n++;
		}
	}
	return n;
}
