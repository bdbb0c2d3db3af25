// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The keeper's AUX areas, with a kernel that this test plays: a memfd is the perf event, and the
 * PMU writes a record when it is stopped, if the ring has room. A real PMU: vm/test-aux.
 */
#include "daemon/keeper/areas.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/order.h"
#include "proto/auxtrace.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"

#define EVENT 7
#define MIB (1ULL << 20)

/* ── the kernel ─────────────────────────────────────────────────────────────────────────── */

struct aux_record {
	struct perf_event_header header;
	uint64_t offset, size, flags;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

static struct {
	long page;
	struct perf_event_mmap_page *ring; /* of the newest event */
	uint8_t *aux;
	struct perf_event_mmap_page *samples; /* of the newest event beside one */
	int output;			      /* where another goes; -1: none */
	uint64_t lost, stops;
	bool is_enabled;
} kernel;

/* As the kernel does: nothing is overwritten. */
static void put_record(uint64_t time)
{
	struct aux_record r = {
		.header = { .type = PERF_RECORD_AUX, .size = sizeof(r) },
		.time = time,
	};
	struct perf_event_mmap_page *p = kernel.ring;
	uint8_t *data = (uint8_t *)p + p->data_offset;

	if (p->data_size - (p->data_head - p->data_tail) < sizeof(r)) {
		kernel.lost++;
		return;
	}
	memcpy(data + (p->data_head & (p->data_size - 1)), &r, sizeof(r));
	p->data_head += sizeof(r);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	va_start(ap, request);
	if (request == PERF_EVENT_IOC_ID)
		*va_arg(ap, uint64_t *) = (uint64_t)fd;
	else if (request == PERF_EVENT_IOC_SET_OUTPUT)
		kernel.output = va_arg(ap, int);
	va_end(ap);
	kernel.is_enabled |= request == PERF_EVENT_IOC_ENABLE;
	if (request != PERF_EVENT_IOC_DISABLE)
		return 0;
	kernel.is_enabled = false;
	put_record(UINT64_MAX - ++kernel.stops);
	return 0;
}

long sysconf(int name)
{
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE && kernel.page ? kernel.page : real(name);
}

static void *map_of_event(size_t length, int prot, int flags, int fd, off_t at)
{
	void *p = (void *)syscall(SYS_mmap, NULL, length, prot, flags, fd, at);
	struct perf_event_mmap_page *page = p;

	ck_assert(p != MAP_FAILED);
	if (!(prot & PROT_WRITE) && at == 0) { /* a ring that overwrites itself */
		kernel.samples = (void *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE,
						 flags, fd, at);
		return p;
	}
	if (at > 0) {
		ck_assert_uint_eq(kernel.ring->aux_size, length);
		ck_assert_uint_eq(kernel.ring->aux_offset, (uint64_t)at);
		kernel.aux = (void *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, flags,
					     fd, at);
		return p;
	}
	kernel.ring = page;
	page->data_offset = (uint64_t)kernel.page;
	page->data_size = length - page->data_offset;
	/* whole pages, and a power of two of them */
	ck_assert_uint_eq(page->data_size % page->data_offset, 0);
	ck_assert_uint_gt(page->data_size, 0);
	ck_assert_uint_eq(page->data_size & (page->data_size - 1), 0);
	return p;
}

void *mmap(void *where, size_t length, int prot, int flags, int fd, off_t at)
{
	if (kernel.page && fd >= 0)
		return map_of_event(length, prot, flags, fd, at);
	return (void *)syscall(SYS_mmap, where, length, prot, flags, fd, at);
}

/* ── how long the keeper looks at nothing else ──────────────────────────────────────────── */

static struct {
	uint64_t calls, bytes, most; /* written since the last call */
} work;

static void on_busy(void *context)
{
	ck_assert_ptr_eq(context, &work);
	work.calls++;
	work.bytes = 0;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	work.bytes += n;
	work.most = MAX(work.most, work.bytes);
	return syscall(SYS_pwrite64, fd, bytes, n, at);
}

static struct areas areas;

static void setup(void)
{
	kernel.page = 4096;
	areas_init(&areas, on_busy, &work);
}

static void teardown(void)
{
	areas_done(&areas);
	kernel.page = 0;
}

static void put(uint32_t cpu, uint64_t size, uint32_t paused)
{
	struct pp_keep_cpu c = { .cpu = cpu, .generation = 1 };
	int fd = memfd_create("event", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, (off_t)(size + (2U << 20))), 0);
	ck_assert_int_eq(areas_put(&areas, EVENT, &c, size, paused, &fd, 0), 0);
}

static int event_file(uint64_t size)
{
	int fd = memfd_create("event", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
	return fd;
}

/* An area with two events beside it. The kernel's ids are the descriptors' numbers. */
static void put_group(uint64_t size, int ret[3])
{
	struct pp_keep_cpu c = { .cpu = 0, .generation = 1 };
	int fds[3];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		ret[i] = fds[i] = event_file(size + (2U << 20));
	kernel.output = -1;
	ck_assert_int_eq(areas_put(&areas, EVENT, &c, size, 0, fds, 2), 0);
	ck_assert_int_eq(kernel.output, ret[1]);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		ck_assert_int_eq(fds[i], -EBADF);
}

struct copy {
	struct pp_auxtrace_header header;
	uint8_t *bytes; /* the whole file */
};

static struct copy take(uint32_t cpu)
{
	_cleanup_close_ int fd = -EBADF;
	struct copy copy;
	uint64_t size;

	ck_assert_int_eq(areas_take(&areas, EVENT, cpu, &fd, &size), 0);
	copy.bytes = malloc(size);
	ck_assert_int_eq(read(fd, copy.bytes, size), (ssize_t)size);
	memcpy(&copy.header, copy.bytes, sizeof(copy.header));
	ck_assert_uint_eq(copy.header.size, size);
	ck_assert_uint_eq(size, sizeof(copy.header) + copy.header.records + copy.header.trace +
					copy.header.samples);
	return copy;
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

START_TEST(pages)
{
	static const long sizes[] = { 4096, 16384, 65536 };
	struct pp_spec spec = { .flags = PP_EVENT_AUX, .data_size = 1 << 17 };

	kernel.page = sizes[_i];
	put(0, spec.data_size, 0);
	ck_assert(kernel.is_enabled);
	ck_assert_uint_ge(kernel.ring->data_size, 32768);
	ck_assert_uint_eq(pp_spec_aux_memory(&spec),
			  spec.data_size + kernel.ring->data_offset + kernel.ring->data_size);
	/* A full ring, and the record of the stop. */
	while (!kernel.lost)
		put_record(1);
	kernel.lost = 0;
	free(take(0).bytes);
	ck_assert_uint_eq(kernel.lost, 0);
}
END_TEST

/* Of a PMU whose aux_head counts on, and of one whose aux_head is an offset in the area. */
START_TEST(oldest_first)
{
	static const struct {
		uint64_t head, trace, first;
	} cases[] = {
		{ 0, 0, 0 },	     { 24, 24, 0 },
		{ 65536, 65536, 0 }, { 65536 * 3 + 24, 65536, 24 },
		{ 24, 65536, 24 }, /* something is behind it */
	};
	struct copy copy;

	put(0, 65536, 0);
	for (uint64_t i = 0; i < 65536 / 8; i++)
		if (cases[_i].trace == 65536 || 8 * i < cases[_i].head)
			memcpy(kernel.aux + 8 * i, &(uint64_t){ i + 1 }, 8);
	kernel.ring->aux_head = cases[_i].head;
	copy = take(0);
	ck_assert_uint_eq(copy.header.trace, cases[_i].trace);
	ck_assert_uint_eq(copy.header.head, cases[_i].head);
	for (uint64_t i = 0; i < cases[_i].trace / 8; i++) {
		uint64_t word, at = (cases[_i].first / 8 + i) % (65536 / 8);

		memcpy(&word, copy.bytes + copy.header.size - copy.header.trace + 8 * i, 8);
		ck_assert_uint_eq(word, at + 1);
	}
	ck_assert(kernel.is_enabled);
	free(copy.bytes);
}
END_TEST

/* The ring is full of earlier stops' records. Those are in the copy, and the last one is its own. */
START_TEST(the_record_of_the_stop)
{
	uint64_t full = 0;
	struct aux_record last;
	struct copy copy;

	put(0, 65536, 0);
	for (; !kernel.lost; full++)
		put_record(full);
	kernel.lost = 0;
	copy = take(0);
	ck_assert_uint_eq(kernel.stops, 1);
	ck_assert_uint_eq(kernel.lost, 0);
	ck_assert_uint_eq(copy.header.records, full * sizeof(last)); /* one had found no room */
	memcpy(&last, copy.bytes + sizeof(copy.header) + copy.header.records - sizeof(last),
	       sizeof(last));
	ck_assert_uint_eq(last.time, UINT64_MAX - kernel.stops);
	free(copy.bytes);
	/* Paused: nothing is stopped. */
	ck_assert_int_eq(areas_pause(&areas, EVENT, 1), 0);
	free(take(0).bytes);
	copy = take(0);
	ck_assert_uint_eq(kernel.stops, 2);
	ck_assert_uint_eq(copy.header.records, 0);
	ck_assert(!kernel.is_enabled);
	free(copy.bytes);
}
END_TEST

#define CPUS 5

START_TEST(never_busy_for_long)
{
	uint64_t before;

	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		before = work.calls;
		put(cpu, 16 * MIB, 0);
		ck_assert_uint_gt(work.calls, before);
	}
	/* What is not there has to be looked for, too. */
	before = work.calls;
	free(take(CPUS - 1).bytes);
	ck_assert_uint_ge(work.calls - before, 15);
	for (int modulo = 0; modulo < 2; modulo++) {
		kernel.ring->aux_head = (modulo ? 0 : 32 * MIB) + 3 * MIB;
		kernel.aux[16 * MIB - 1] = 1;
		before = work.calls;
		work.most = work.bytes = 0;
		free(take(CPUS - 1).bytes);
		ck_assert_uint_ge(work.calls - before, 16);
		ck_assert_uint_ge(work.most, MIB);
		ck_assert_uint_le(work.most, MIB + sizeof(struct pp_auxtrace_header));
	}
	before = work.calls;
	ck_assert_int_eq(areas_pause(&areas, EVENT, 1), 0);
	ck_assert_uint_ge(work.calls - before, CPUS);
	before = work.calls;
	areas_drop(&areas, EVENT, 0);
	ck_assert_uint_eq(areas.n, CPUS - 1);
	areas_drop(&areas, EVENT, UINT32_MAX);
	ck_assert_uint_eq(areas.n, 0);
	ck_assert_uint_ge(work.calls - before, CPUS);
	put(0, 65536, 0);
	before = work.calls;
	areas_done(&areas);
	ck_assert_uint_gt(work.calls, before);
}
END_TEST

static uint64_t converted(const struct pp_auxtrace_header *h)
{
	uint64_t rest = h->counter & ((1ULL << h->time_shift) - 1);

	return h->time_zero + (h->counter >> h->time_shift) * h->time_mult +
	       (rest * h->time_mult >> h->time_shift);
}

/* The counter of the copy becomes its time, of an event that is paused, too. */
START_TEST(clocks)
{
	static const struct {
		uint32_t mult;
		uint16_t shift;
		bool is_known;
	} cases[] = { { 0, 0, false }, { 1 << 20, 22, true },	 { 357913941, 30, true },
		      { 3, 0, true },  { UINT32_MAX, 31, true }, { 1000, 10, false },
		      { 0, 10, true } };
	bool can = false;

#if defined(__x86_64__) || defined(__aarch64__)
	can = true;
#endif
	for (uint32_t paused = 0; paused < 2; paused++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			uint64_t before = pp_clock_ns(CLOCK_MONOTONIC);
			struct copy copy;

			put(0, 65536, paused);
			kernel.ring->cap_user_time = cases[i].is_known;
			kernel.ring->time_mult = cases[i].mult;
			kernel.ring->time_shift = cases[i].shift;
			copy = take(0);
			ck_assert_uint_eq(!!(copy.header.flags & PP_AUXTRACE_TSC),
					  can && cases[i].is_known && cases[i].mult);
			if (copy.header.flags & PP_AUXTRACE_TSC) {
				ck_assert_uint_eq(copy.header.time_mult, cases[i].mult);
				ck_assert_uint_eq(copy.header.time_shift, cases[i].shift);
			}
			ck_assert_uint_ge(converted(&copy.header), before);
			ck_assert_uint_le(converted(&copy.header), pp_clock_ns(CLOCK_MONOTONIC));
			free(copy.bytes);
		}
}
END_TEST

struct sample {
	struct perf_event_header header;
	uint64_t number;
};

/* As the kernel does: downward, from 2^64. */
static void put_sample(uint64_t number, uint64_t size, uint16_t bytes)
{
	const struct sample s = { { .type = PERF_RECORD_SAMPLE, .size = bytes }, number };

	kernel.samples->data_head -= bytes;
	for (size_t i = 0; i < sizeof(s); i += 8)
		memcpy((uint8_t *)kernel.samples + kernel.page +
			       ((kernel.samples->data_head + i) & (size - 1)),
		       (const uint8_t *)&s + i, 8);
}

/* Each time that it was stopped counts, but for the copy's own; a part of a millisecond as a whole one. */
START_TEST(untraced)
{
	struct copy first, second;
	uint64_t gap;

	put(0, 65536, _i);
	usleep(3000);
	first = take(0);
	if (_i)
		ck_assert_uint_ge(first.header.untraced, 3);
	else
		ck_assert_uint_eq(first.header.untraced, 0);
	free(first.bytes);

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(areas_pause(&areas, EVENT, 1), 0);
		usleep(3000);
		ck_assert_int_eq(areas_pause(&areas, EVENT, 1), 0); /* which is nothing new */
		ck_assert_int_eq(areas_pause(&areas, EVENT, 0), 0);
	}
	second = take(0);
	gap = first.header.resumed - first.header.stopped;
	ck_assert_uint_ge(second.header.untraced * 1000000ULL, gap + 3000000 * (_i + 2ULL));
	ck_assert_uint_le(second.header.untraced * 1000000ULL,
			  second.header.stopped - second.header.began + 999999);
	free(second.bytes);
}
END_TEST

/* The samples of a ring, the newest first, however often it has been overwritten. */
START_TEST(samples_beside)
{
	static const uint64_t numbers[] = { 0, 1, 65536 / 24, 65536 / 24 + 1, 100000 };
	const uint64_t size = 65536, n = numbers[_i];
	uint64_t whole = MIN(n, size / 24), at, word, stops;
	struct copy copy;
	int fds[3];

	put_group(size, fds);
	for (uint64_t i = 1; i <= n; i++)
		put_sample(i, size, 24);
	copy = take(0);
	ck_assert_uint_eq(copy.header.n_beside, 2);
	ck_assert_uint_eq(copy.header.samples, 16 + 24 * whole);
	at = copy.header.size - copy.header.samples;
	for (int i = 1; i < 3; i++, at += 8) {
		memcpy(&word, copy.bytes + at, 8);
		ck_assert_uint_eq(word, (uint64_t)fds[i]);
	}
	for (uint64_t i = 0; i < whole; i++, at += 24) {
		struct sample s;

		memcpy(&s, copy.bytes + at, sizeof(s));
		ck_assert_uint_eq(s.number, n - i);
		ck_assert_uint_eq(s.header.size, 24);
	}
	free(copy.bytes);
	/* Nothing of the group is left open, and it is stopped before anything is unmapped. */
	stops = kernel.stops;
	areas_drop(&areas, EVENT, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		ck_assert_int_eq(fcntl(fds[i], F_GETFD), -1);
	ck_assert_uint_eq(kernel.stops, stops + 1);
}
END_TEST

/* What stands there instead of a record ends the copy, and a record that is there in part. */
START_TEST(damaged_samples)
{
	static const uint16_t sizes[] = { 0, 7, 12, 65528 };
	const uint64_t size = 65536;
	struct copy copy;
	int fds[3];

	put_group(size, fds);
	for (uint64_t i = 0; i < 3; i++)
		put_sample(i, size, 24);
	memcpy((uint8_t *)kernel.samples + kernel.page + size - 48 +
		       offsetof(struct perf_event_header, size),
	       &sizes[_i], sizeof(sizes[_i]));
	copy = take(0);
	ck_assert_uint_eq(copy.header.samples, 16 + 24);
	free(copy.bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("areas");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, pages, 0, 3);
	tcase_add_loop_test(t, oldest_first, 0, 5);
	tcase_add_test(t, the_record_of_the_stop);
	tcase_add_test(t, never_busy_for_long);
	tcase_add_test(t, clocks);
	tcase_add_loop_test(t, untraced, 0, 2);
	tcase_add_loop_test(t, samples_beside, 0, 5);
	tcase_add_loop_test(t, damaged_samples, 0, 4);
	suite_add_tcase(s, t);
	return run_suite(s);
}
