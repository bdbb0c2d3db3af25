// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * AUX areas. The kernel's protocol (perf_ring_buffer.rst, "Snapshot mode"): an area that is mapped
 * read-only overwrites itself; while the event is disabled the PMU has written all of its trace,
 * and aux_head; the ring beside it has a PERF_RECORD_AUX of each time that it was stopped.
 */
#include "daemon/keeper/areas.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "daemon/order.h"
#include "proto/auxtrace.h"
#include "proto/clock.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"

#define START_MAX 64	   /* bytes of an ITRACE_START: header, pid, tid, sample_id */
#define CHUNK (1ULL << 20) /* of an area: what is read between two calls of busy() */

struct area {
	uint64_t event, generation;
	uint32_t cpu, paused;
	int fd;
	uint8_t *ring; /* a page, then `data` bytes of records */
	size_t page, data;
	const uint8_t *aux;
	uint64_t size;
	uint64_t tail; /* of the ring */
	uint64_t began, copies;
	uint8_t start[START_MAX]; /* the ITRACE_START; n_start 0: none was seen */
	size_t n_start;
};

/* ── mapping ────────────────────────────────────────────────────────────────────────────── */

static struct perf_event_mmap_page *control(const struct area *a)
{
	return (struct perf_event_mmap_page *)(void *)a->ring;
}

static void area_free(struct area *a)
{
	if (!a)
		return;
	if (a->aux)
		munmap((void *)a->aux, a->size);
	if (a->ring)
		munmap(a->ring, a->page + a->data);
	close_fd(a->fd);
	free(a);
}

/* Mapping and unmapping take the kernel up to 100 ms for one area, and there are hundreds. */
static void be_busy(const struct areas *a)
{
	a->busy(a->context);
}

static void cleanup_area(struct area **a)
{
	area_free(*a);
}

/* A PMU without AUX areas fails here, as nothing else says which ones have them. */
static int map_area(struct area *a, int fd)
{
	struct perf_event_mmap_page *page;
	void *p;

	p = mmap(NULL, a->page + a->data, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	a->ring = p;
	page = control(a);
	if (page->data_offset != a->page || page->data_size != a->data)
		return -EBADMSG;
	page->aux_offset = a->page + a->data;
	page->aux_size = a->size;
	p = mmap(NULL, a->size, PROT_READ, MAP_SHARED, fd, (off_t)page->aux_offset);
	if (p == MAP_FAILED)
		return -errno;
	a->aux = p;
	return 0;
}

static int area_new(uint64_t event, const struct pp_keep_cpu *cpu, uint64_t size, int fd,
		    struct area **ret)
{
	_cleanup_(cleanup_area) struct area *a = calloc(1, sizeof(*a));
	uint64_t id;
	int r;

	if (!a)
		return -ENOMEM;
	a->fd = -EBADF;
	a->event = event;
	a->cpu = cpu->cpu;
	a->generation = cpu->generation;
	a->page = (size_t)sysconf(_SC_PAGESIZE);
	a->data = pp_aux_ring_data(a->page);
	a->size = size;
	if (size < a->page || size > PP_AUX_SIZE_MAX || size & (size - 1))
		return -EBADMSG;
	/* A plain file could be cut short under us, so the descriptor must be a perf event. */
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return -EBADMSG;
	r = map_area(a, fd);
	if (r < 0)
		return r;
	a->began = pp_clock_ns(CLOCK_MONOTONIC);
	*ret = TAKE_PTR(a);
	return 0;
}

static int enable(const struct area *a, bool on)
{
	return ioctl(a->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno
											: 0;
}

/* ── all areas ──────────────────────────────────────────────────────────────────────────── */

void areas_init(struct areas *a, void (*busy)(void *context), void *context)
{
	*a = (struct areas){ .busy = busy, .context = context };
}

void areas_done(struct areas *a)
{
	while (a->n) {
		area_free(a->area[--a->n]);
		be_busy(a);
	}
	free(a->area);
	a->area = NULL;
}

static bool is_before(const struct area *a, uint64_t event, uint32_t cpu)
{
	return a->event != event ? a->event < event : a->cpu < cpu;
}

/* The index of that area, or where to insert it. */
static size_t place(const struct areas *a, uint64_t event, uint32_t cpu)
{
	size_t low = 0, high = a->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (is_before(a->area[middle], event, cpu))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct area *find(const struct areas *a, uint64_t event, uint32_t cpu)
{
	size_t i = place(a, event, cpu);

	return i < a->n && a->area[i]->event == event && a->area[i]->cpu == cpu ? a->area[i] : NULL;
}

static void remove_at(struct areas *a, size_t i)
{
	area_free(a->area[i]);
	be_busy(a);
	a->n--;
	memmove(a->area + i, a->area + i + 1, (a->n - i) * sizeof(*a->area));
}

static int insert_at(struct areas *a, size_t i, struct area *area)
{
	struct area **more = realloc(a->area, (a->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	a->area = more;
	memmove(more + i + 1, more + i, (a->n - i) * sizeof(*more));
	more[i] = area;
	a->n++;
	return 0;
}

int areas_put(struct areas *a, uint64_t event, const struct pp_keep_cpu *cpu, uint64_t aux_size,
	      uint32_t paused, int fd)
{
	_cleanup_(cleanup_area) struct area *new = NULL;
	size_t i = place(a, event, cpu->cpu);
	int r;

	if (find(a, event, cpu->cpu))
		remove_at(a, i); /* it is dead: no PMU traces into two areas of a CPU */
	if (a->n >= PP_KEEP_AREAS_MAX)
		return -ENOSPC;
	r = area_new(event, cpu, aux_size, fd, &new);
	be_busy(a);
	if (r < 0)
		return r;
	r = insert_at(a, i, new);
	if (r < 0)
		return r;
	new->fd = fd;
	new->paused = paused;
	r = paused ? 0 : enable(new, true);
	if (r < 0) {
		new->fd = -EBADF; /* the caller's */
		remove_at(a, i);
	}
	new = NULL;
	return r;
}

int areas_pause(struct areas *a, uint64_t event, uint32_t pause)
{
	int r = 0;

	for (size_t i = place(a, event, 0); i < a->n && a->area[i]->event == event; i++) {
		int one = enable(a->area[i], !pause);

		if (one >= 0)
			a->area[i]->paused = pause;
		else
			r = one;
		be_busy(a);
	}
	return r;
}

void areas_drop(struct areas *a, uint64_t event, uint32_t cpu)
{
	bool all = cpu == UINT32_MAX;
	size_t i = place(a, event, all ? 0 : cpu);

	while (i < a->n && a->area[i]->event == event && (all || a->area[i]->cpu == cpu))
		remove_at(a, i);
}

void areas_held(const struct areas *a, uint64_t event, uint32_t cpu, struct pp_keep_answer *ret)
{
	size_t i = event ? place(a, event, cpu) : 0;

	if (event && find(a, event, cpu))
		i++;
	for (; i < a->n; i++) {
		const struct area *area = a->area[i];

		if (ret->n_areas == PP_KEEP_CPUS) {
			ret->more = 1;
			return;
		}
		ret->areas[ret->n_areas++] = (struct pp_keep_area){
			.event = area->event,
			.generation = area->generation,
			.aux_size = area->size,
			.cpu = area->cpu,
			.paused = area->paused,
		};
	}
}

/* ── the records beside an area ─────────────────────────────────────────────────────────── */

/* Empties the ring. A record in it counts what found no room there. */
static size_t drain(struct area *a, uint8_t *to)
{
	uint64_t head = __atomic_load_n(&control(a)->data_head, __ATOMIC_ACQUIRE);
	size_t n = head - a->tail, at = a->tail & (a->data - 1), first;

	if (n > a->data) /* the kernel never does that */
		n = 0;
	first = MIN(n, a->data - at);
	memcpy(to, a->ring + a->page + at, first);
	memcpy(to + first, a->ring + a->page, n - first);
	a->tail = head;
	__atomic_store_n(&control(a)->data_tail, head, __ATOMIC_RELEASE);
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

	if (!read_rate(control(a), h) || !read_clocks(&h->counter, &time)) {
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
static bool has_wrapped(const struct areas *all, const struct area *a, uint64_t head)
{
	uint64_t end = a->size, n;

	if (head >= a->size)
		return true;
	for (; end > head; end -= n) {
		n = MIN(end - head, CHUNK);
		if (has_any(a->aux + end - n, n))
			return true;
		be_busy(all);
	}
	return false;
}

static int write_part(const struct areas *all, const uint8_t *bytes, uint64_t n, int file,
		      uint64_t to)
{
	int r = 0;

	for (uint64_t at = 0; r >= 0 && at < n; at += CHUNK) {
		r = pp_pwrite_all(file, bytes + at, MIN(n - at, CHUNK), to + at);
		be_busy(all);
	}
	return r;
}

static int write_trace(const struct areas *all, const struct area *a,
		       const struct pp_auxtrace_header *h, int file)
{
	uint64_t at = h->head & (a->size - 1), to = h->size - h->trace, older = 0;
	int r = 0;

	if (h->trace == a->size) {
		older = a->size - at;
		r = write_part(all, a->aux + at, older, file, to);
	}
	return r < 0 ? r : write_part(all, a->aux, h->trace - older, file, to + older);
}

/* The PMU stands still. records: n bytes of before it was stopped, with room for a ring more. */
static int write_copy(const struct areas *all, struct area *a, struct pp_auxtrace_header *h,
		      int file, uint8_t *records, size_t n)
{
	int r;

	take_clock(a, h);
	n += check_records(a, records + n, drain(a, records + n));
	h->records += n;
	h->head = __atomic_load_n(&control(a)->aux_head, __ATOMIC_ACQUIRE);
	if (has_wrapped(all, a, h->head))
		h->flags |= PP_AUXTRACE_WRAPPED;
	h->trace = h->flags & PP_AUXTRACE_WRAPPED ? a->size : h->head;
	h->size = sizeof(*h) + h->records + h->trace;
	r = pp_pwrite_all(file, records, n, sizeof(*h) + h->records - n);
	return r < 0 ? r : write_trace(all, a, h, file);
}

/*
 * The tracing goes on, whatever became of the copy. The ring is emptied before, too: if it is full
 * of records of earlier stops, as of SPE, that of this stop finds no room.
 */
static int stop_and_copy(const struct areas *all, struct area *a, struct pp_auxtrace_header *h,
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
	if (!a->paused) {
		h->stopped = pp_clock_ns(CLOCK_MONOTONIC);
		r = enable(a, false);
		if (r < 0)
			return r;
	}
	r = write_copy(all, a, h, file, records, n);
	if (!a->paused) {
		resumed = enable(a, true);
		h->resumed = pp_clock_ns(CLOCK_MONOTONIC);
		a->copies++;
	}
	return r < 0 ? r : resumed;
}

int areas_take(struct areas *all, uint64_t event, uint32_t cpu, int *ret_fd, uint64_t *ret_size)
{
	_cleanup_close_ int file = -EBADF;
	struct area *a = find(all, event, cpu);
	struct pp_auxtrace_header h;
	int r;

	if (!a)
		return -ENODATA;
	h = (struct pp_auxtrace_header){
		.magic = PP_AUXTRACE_MAGIC,
		.version = PP_AUXTRACE_VERSION,
		.header_size = sizeof(h),
		.event_id = event,
		.cpu = cpu,
		.flags = a->paused ? PP_AUXTRACE_PAUSED : 0,
		.area = a->size,
		.began = a->began,
		.copies = a->copies,
	};
	r = pp_memfile_new("perfpersist-auxtrace", 0, &file);
	if (r >= 0)
		r = stop_and_copy(all, a, &h, file);
	if (r >= 0)
		r = pp_pwrite_all(file, &h, sizeof(h), 0);
	if (r >= 0)
		r = pp_memfile_finish(file, ret_fd);
	if (r >= 0)
		*ret_size = h.size;
	return r;
}
