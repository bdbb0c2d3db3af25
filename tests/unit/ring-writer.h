/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The BPF program's side of proto/ring.h, for tests: a ring in a memfd that cannot shrink, and
 * records written as the BPF programs write them.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <time.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "proto/ring.h"
#include "tests/unit/needs.h"

#define WRITER_EVENT_ID 7
#define WRITER_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)

struct writer {
	int fd;
	uint8_t *ring;
	struct pp_ring_header *header; /* mapped writable */
	size_t size;
};

static inline _Atomic uint64_t *writer_word(struct writer *w, size_t member)
{
	return (_Atomic uint64_t *)(void *)(w->ring + PP_RING_LIVE_OFFSET + member);
}
#define WRITER_WORD(w, word) writer_word(w, offsetof(struct pp_ring_live, word))

static inline struct writer writer_new(uint32_t cpu, uint64_t data_size, uint32_t spill_size)
{
	struct writer w = { .size = pp_ring_size(PP_RING_PAGE, data_size, spill_size) };

	w.fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_ge(w.fd, 0);
	ck_assert_int_eq(ftruncate(w.fd, (off_t)w.size), 0);
	ck_assert_int_eq(fcntl(w.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	w.ring = mmap(NULL, w.size, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
	ck_assert(w.ring != MAP_FAILED);
	w.header = (struct pp_ring_header *)(void *)w.ring;
	*w.header = (struct pp_ring_header){
		.magic = PP_RING_MAGIC,
		.version = PP_RING_VERSION,
		.header_size = PP_RING_PAGE,
		.data_size = data_size,
		.spill_size = spill_size,
		.cpu = cpu,
		.event_id = WRITER_EVENT_ID,
		.sample_type = WRITER_SAMPLE_TYPE,
		.clockid = CLOCK_MONOTONIC,
		.recorder = PP_RECORDER_GENERIC,
		.n_sources = 1,
		.set = 1,
		.ns = "space",
		.name = "name",
		.event = "sys:tracepoint",
	};
	return w;
}

static inline void writer_done(struct writer *w)
{
	munmap(w->ring, w->size);
	close(w->fd);
}

/* Reserves, writes and commits n bytes, like a program that cannot nest. */
static inline void writer_put(struct writer *w, const void *record, size_t n)
{
	uint64_t at = atomic_load(WRITER_WORD(w, head)) - n;
	uint8_t *data = w->ring + w->header->header_size;

	atomic_store(WRITER_WORD(w, reserve), at);
	memcpy(data + (at & (w->header->data_size - 1)), record, n);
	atomic_fetch_add(WRITER_WORD(w, records), 1);
	atomic_store(WRITER_WORD(w, head), at);
}

/*
 * Like writers that can interrupt each other: reserves room, and returns its position. Everything
 * until writer_commit() is an interruption.
 */
static inline uint64_t writer_reserve(struct writer *w, size_t n)
{
	uint64_t at, old = atomic_load(WRITER_WORD(w, reserve));

	atomic_fetch_add(WRITER_WORD(w, nest), 1);
	do
		at = old - n;
	while (!atomic_compare_exchange_strong(WRITER_WORD(w, reserve), &old, at));
	return at;
}

static inline void writer_commit(struct writer *w, uint64_t at, const void *record, size_t n)
{
	uint8_t *data = w->ring + w->header->header_size;
	uint64_t reserve;

	memcpy(data + (at & (w->header->data_size - 1)), record, n);
	atomic_fetch_add(WRITER_WORD(w, records), 1);
	do {
		reserve = atomic_load(WRITER_WORD(w, reserve));
		if (atomic_load(WRITER_WORD(w, nest)) == 1)
			atomic_store(WRITER_WORD(w, head), reserve);
		if (atomic_fetch_sub(WRITER_WORD(w, nest), 1) != 1 ||
		    atomic_load(WRITER_WORD(w, reserve)) == atomic_load(WRITER_WORD(w, head)))
			return;
		atomic_fetch_add(WRITER_WORD(w, nest), 1);
	} while (1);
}

struct writer_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t raw_size;
	uint8_t raw[8192];
} __attribute__((packed));

/* A record with `size` bytes of payload (4 more than a multiple of 8), all bytes of the payload
 * derived from tid. */
static inline size_t writer_make(struct writer_record *r, uint32_t tid, uint64_t time, size_t size)
{
	size_t n = offsetof(struct writer_record, raw) + size;

	ck_assert_uint_eq(n % 8, 0);
	r->header = (struct perf_event_header){
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_KERNEL,
		.size = (uint16_t)n,
	};
	r->pid = 1;
	r->tid = tid;
	r->time = time;
	r->raw_size = (uint32_t)size;
	memset(r->raw, (uint8_t)(tid * 31 + 7), size);
	return n;
}

static inline void writer_write(struct writer *w, uint32_t tid, uint64_t time, size_t size)
{
	struct writer_record r;
	size_t n = writer_make(&r, tid, time, size);

	writer_put(w, &r, n);
}

/* Is the payload the one that writer_make() gives this tid? */
static inline bool writer_is_whole(const struct perfpersist_sample *s)
{
	for (size_t i = 0; i < s->raw_size; i++)
		if (((const uint8_t *)s->raw)[i] != (uint8_t)(s->tid * 31 + 7))
			return false;
	return s->raw_size > 0;
}

static inline struct perfpersist_event *writer_open(const struct writer *w, size_t n)
{
	struct perfpersist_event *e = NULL;
	int fds[16];

	for (size_t i = 0; i < n; i++)
		fds[i] = w[i].fd;
	ck_assert_int_eq(perfpersist_open_fds(fds, n, &e), 0);
	return e;
}

static inline struct perfpersist_snapshot *writer_snapshot(struct perfpersist_event *e)
{
	struct perfpersist_snapshot *s = NULL;

	ck_assert_int_eq(perfpersist_snapshot_new(e, &s), 0);
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
	return s;
}
