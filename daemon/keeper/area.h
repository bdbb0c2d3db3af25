/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One AUX area: the perf event that traces into it, perf's ring beside it, the perf events of its group and the
 * ring of their samples, the mappings of all. area.c maps it, area-copy.c copies it. Must not know which others
 * there are.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/keep.h"

#define AREA_CHUNK (1ULL << 20) /* bytes of an area that are handled between two calls of busy */
#define AREA_START_MAX 64	/* bytes of an ITRACE_START: header, pid, tid, sample_id */

struct area {
	uint64_t event, generation;
	uint32_t cpu, paused;
	int fd;	       /* owned */
	int *beside;   /* n_beside, owned: of its group */
	uint64_t *ids; /* theirs, in samples */
	uint32_t n_beside;
	const uint8_t *samples; /* a page, then `size` bytes, backward; NULL: none beside */
	uint8_t *ring;		/* a page, then `data` bytes of records */
	size_t page, data;
	const uint8_t *aux;
	uint64_t size;
	uint64_t tail; /* of the ring */
	uint64_t began, copies;
	uint64_t stopped;	       /* CLOCK_MONOTONIC, ns: since when; 0: it traces */
	uint64_t untraced;	       /* ns, of all times that it was stopped before */
	uint8_t start[AREA_START_MAX]; /* the ITRACE_START; n_start 0: none was seen */
	size_t n_start;
};

/* What long operations call now and then. */
struct area_busy {
	void (*call)(void *context);
	void *context;
};

static inline struct perf_event_mmap_page *area_control(const struct area *a)
{
	return (struct perf_event_mmap_page *)(void *)a->ring;
}

/* Maps an area of `size` bytes, and takes fds as areas_put(); errors as of that. */
int area_new(uint64_t event, const struct pp_keep_cpu *cpu, uint64_t size, int *fds,
	     uint32_t n_beside, struct area **ret);

void area_free(struct area *a);
void area_cleanup(struct area **a);

/* Starts or stops the tracing, and with it its group: 0 or -errno. */
int area_enable(struct area *a, bool on);

/* A copy, for which the tracing stops, in a sealed file: *ret_fd is the caller's. 0 or -errno. */
int area_copy(struct area *a, const struct area_busy *busy, int *ret_fd, uint64_t *ret_size);
