// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A copy of an AUX area. The kernel's protocol (perf_ring_buffer.rst, "Snapshot mode"): an area that is mapped
 * read-only overwrites itself; while the event is disabled the PMU has written all of its trace,
 * and aux_head; the ring beside it has a PERF_RECORD_AUX of each time that it was stopped. Its group is
 * disabled with it, so that nothing is written to their ring either.
 */
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "daemon/keeper/area.h"
#include "proto/auxtrace.h"
#include "proto/clock.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"

/* ── the records beside an area ─────────────────────────────────────────────────────────── */

/* Empties the ring. A record in it counts what found no room there. */
static size_t drain(struct area *a, uint8_t *to)
{
	uint64_t head = __atomic_load_n(&area_control(a)->data_head, __ATOMIC_ACQUIRE);
	size_t n = head - a->tail, at = a->tail & (a->data - 1), first;

	if (n > a->data) /* the kernel never does that */
		n = 0;
	first = MIN(n, a->data - at);
	memcpy(to, a->ring + a->page + at, first);
	memcpy(to + first, a->ring + a->page, n - first);
	a->tail = head;
	__atomic_store_n(&area_control(a)->data_tail, head, __ATOMIC_RELEASE);
	return n;
}

/* Bytes of whole records. The first ITRACE_START is kept for copies to come. */
static size_t check_records(struct area *a, const uint8_t *records, size_t n)
{
	size_t at = 0, size;

	while ((size = pp_record_extent(records + at, n - at, PP_SIDEBAND_SAMPLE_TYPE)) > 0) {
		struct perf_event_header h;

		memcpy(&h, records + at, sizeof(h));
		if (h.type == PERF_RECORD_ITRACE_START && size <= sizeof(a->start) && !a->n_start) {
			memcpy(a->start, records + at, size);
			a->n_start = size;
		}
		at += size;
	}
	return at;
}

/* ── the clock ──────────────────────────────────────────────────────────────────────────── */

/* The counter of the trace's time stamps, which the page's time_mult and time_shift are for. */
static bool read_counter(uint64_t *ret)
{
#if defined(__x86_64__)
	_mm_lfence();
	*ret = __rdtsc();
	return true;
#elif defined(__aarch64__)
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(*ret) : : "memory");
	return true;
#else
	*ret = 0;
	return false;
#endif
}

/* Both at one moment. Another task may run in between: of several attempts the fastest counts. */
static bool read_clocks(uint64_t *ret_counter, uint64_t *ret_time)
{
	uint64_t least = UINT64_MAX, counter;

	for (int i = 0; i < 8 && least > 1000; i++) {
		uint64_t before = pp_clock_ns(CLOCK_MONOTONIC), took;

		if (!read_counter(&counter))
			return false;
		took = pp_clock_ns(CLOCK_MONOTONIC) - before;
		if (took >= least)
			continue;
		least = took;
		*ret_counter = counter;
		*ret_time = before + took / 2;
	}
	return true;
}

/* Reads the page as its comment in linux/perf_event.h says. The kernel never takes that long. */
static bool read_rate(const volatile struct perf_event_mmap_page *page,
		      struct pp_auxtrace_header *h)
{
	for (int i = 0; i < 10000; i++) {
		uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		bool is_known = page->cap_user_time && page->time_mult && page->time_shift < 64;

		h->time_mult = page->time_mult;
		h->time_shift = page->time_shift;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(lock & 1) && page->lock == lock)
			return is_known;
	}
	return false;
}

/*
 * Records with CLOCK_MONOTONIC have no time_zero in the page, because the page's clock is another
 * one: it follows the counter, and NTP never corrects it.
 */
static void take_clock(const struct area *a, struct pp_auxtrace_header *h)
{
	uint64_t time = 0, rest;

	if (!read_rate(area_control(a), h) || !read_clocks(&h->counter, &time)) {
		h->time_mult = 1;
		h->time_shift = 0;
		h->counter = pp_clock_ns(CLOCK_MONOTONIC);
		return;
	}
	rest = h->counter & ((1ULL << h->time_shift) - 1);
	h->time_zero = time - (h->counter >> h->time_shift) * h->time_mult -
		       (rest * h->time_mult >> h->time_shift);
	h->flags |= PP_AUXTRACE_TSC;
}

/* ── a copy ─────────────────────────────────────────────────────────────────────────────── */

static bool has_any(const uint8_t *bytes, uint64_t n)
{
	return bytes[0] || memcmp(bytes, bytes + 1, n - 1) != 0;
}

/* An aux_head that counts on says whether the area is full. Some PMUs give an offset in the area:
 * what they have not written yet is 0, as the kernel has made it. */
static bool has_wrapped(const struct area_busy *busy, const struct area *a, uint64_t head)
{
	uint64_t end = a->size, n;

	if (head >= a->size)
		return true;
	for (; end > head; end -= n) {
		n = MIN(end - head, AREA_CHUNK);
		if (has_any(a->aux + end - n, n))
			return true;
		busy->call(busy->context);
	}
	return false;
}

static int write_part(const struct area_busy *busy, const uint8_t *bytes, uint64_t n, int file,
		      uint64_t to)
{
	int r = 0;

	for (uint64_t at = 0; r >= 0 && at < n; at += AREA_CHUNK) {
		r = pp_pwrite_all(file, bytes + at, MIN(n - at, AREA_CHUNK), to + at);
		busy->call(busy->context);
	}
	return r;
}

static int write_trace(const struct area_busy *busy, const struct area *a,
		       const struct pp_auxtrace_header *h, int file)
{
	uint64_t at = h->head & (a->size - 1), to = h->size - h->trace, older = 0;
	int r = 0;

	if (h->trace == a->size) {
		older = a->size - at;
		r = write_part(busy, a->aux + at, older, file, to);
	}
	return r < 0 ? r : write_part(busy, a->aux, h->trace - older, file, to + older);
}

/* Where whole records end, in `size` bytes of which the newest come first and the oldest can be overwritten. */
static uint64_t sample_bytes(const struct area_busy *busy, const struct area *a, uint64_t head,
			     uint64_t size)
{
	uint64_t at = 0, busy_at = AREA_CHUNK;
	size_t n;

	/* Headers are aligned to 8 bytes, as the ring is: none is in two parts. */
	while ((n = pp_record_extent(a->samples + a->page + ((head + at) & (a->size - 1)),
				     size - at, 0)) > 0) {
		at += n;
		if (at >= busy_at) {
			busy->call(busy->context);
			busy_at += AREA_CHUNK;
		}
	}
	return at;
}

/* The ring is written backward from 2^64, so its head says how much has been written. */
static int write_samples(const struct area_busy *busy, const struct area *a,
			 struct pp_auxtrace_header *h, int file)
{
	const struct perf_event_mmap_page *page = (const void *)a->samples;
	uint64_t to = h->size, at, n, older, head;
	int r;

	if (!a->samples)
		return 0;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	n = sample_bytes(busy, a, head, MIN(-head, a->size));
	at = head & (a->size - 1);
	older = MIN(n, a->size - at);
	h->n_beside = a->n_beside;
	h->samples = a->n_beside * sizeof(*a->ids) + n;
	h->size += h->samples;
	r = pp_pwrite_all(file, a->ids, a->n_beside * sizeof(*a->ids), to);
	to += a->n_beside * sizeof(*a->ids);
	if (r >= 0)
		r = write_part(busy, a->samples + a->page + at, older, file, to);
	return r < 0 ? r : write_part(busy, a->samples + a->page, n - older, file, to + older);
}

/* The PMU stands still. records: n bytes of before it was stopped, with room for a ring more. */
static int write_copy(const struct area_busy *busy, struct area *a, struct pp_auxtrace_header *h,
		      int file, uint8_t *records, size_t n)
{
	int r;

	take_clock(a, h);
	n += check_records(a, records + n, drain(a, records + n));
	h->records += n;
	h->head = __atomic_load_n(&area_control(a)->aux_head, __ATOMIC_ACQUIRE);
	if (has_wrapped(busy, a, h->head))
		h->flags |= PP_AUXTRACE_WRAPPED;
	h->trace = h->flags & PP_AUXTRACE_WRAPPED ? a->size : h->head;
	h->size = sizeof(*h) + h->records + h->trace;
	r = pp_pwrite_all(file, records, n, sizeof(*h) + h->records - n);
	if (r >= 0)
		r = write_trace(busy, a, h, file);
	return r < 0 ? r : write_samples(busy, a, h, file);
}

static uint32_t untraced_ms(const struct area *a)
{
	uint64_t ns = a->untraced;

	if (a->stopped)
		ns += pp_clock_ns(CLOCK_MONOTONIC) - a->stopped;
	return (uint32_t)MIN((ns + 999999) / 1000000, (uint64_t)UINT32_MAX);
}

/*
 * The tracing goes on, whatever became of the copy. The ring is emptied before, too: if it is full
 * of records of earlier stops, as of SPE, that of this stop finds no room.
 */
static int stop_and_copy(const struct area_busy *busy, struct area *a, struct pp_auxtrace_header *h,
			 int file)
{
	_cleanup_free_ uint8_t *records = malloc(2 * a->data);
	int r, resumed = 0;
	size_t n;

	if (!records)
		return -ENOMEM;
	h->records = a->n_start;
	r = pp_pwrite_all(file, a->start, a->n_start, sizeof(*h));
	if (r < 0)
		return r;
	n = check_records(a, records, drain(a, records));
	h->untraced = untraced_ms(a);
	if (!a->paused) {
		r = area_enable(a, false);
		if (r < 0)
			return r;
		h->stopped = a->stopped;
	}
	r = write_copy(busy, a, h, file, records, n);
	if (!a->paused) {
		resumed = area_enable(a, true);
		h->resumed = pp_clock_ns(CLOCK_MONOTONIC);
		a->copies++;
	}
	return r < 0 ? r : resumed;
}

int area_copy(struct area *a, const struct area_busy *busy, int *ret_fd, uint64_t *ret_size)
{
	_cleanup_close_ int file = -EBADF;
	struct pp_auxtrace_header h = {
		.magic = PP_AUXTRACE_MAGIC,
		.version = PP_AUXTRACE_VERSION,
		.header_size = sizeof(h),
		.event_id = a->event,
		.cpu = a->cpu,
		.flags = a->paused ? PP_AUXTRACE_PAUSED : 0,
		.area = a->size,
		.began = a->began,
		.copies = a->copies,
	};
	int r = pp_memfile_new("perfpersist-auxtrace", 0, &file);

	if (r >= 0)
		r = stop_and_copy(busy, a, &h, file);
	if (r >= 0)
		r = pp_pwrite_all(file, &h, sizeof(h), 0);
	if (r >= 0)
		r = pp_memfile_finish(file, ret_fd);
	if (r >= 0)
		*ret_size = h.size;
	return r;
}
