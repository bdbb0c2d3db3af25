// SPDX-License-Identifier: LGPL-2.1-or-later
/* Following rings: each record once, in order, and an exact count of those that were
 * overwritten. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/catalog-writer.h"
#include "tests/unit/needs.h"

static struct perfpersist_follow *follow(struct perfpersist_event *e, size_t newest)
{
	struct perfpersist_follow *f = NULL;

	ck_assert_int_eq(perfpersist_follow_new(e, newest, &f), 0);
	return f;
}

static struct perfpersist_follow_stat stat_of(struct perfpersist_follow *f, size_t ring)
{
	struct perfpersist_follow_stat stat = { .sz = sizeof(stat) };

	ck_assert_int_eq(perfpersist_follow_stat(f, ring, &stat), 0);
	return stat;
}

static uint64_t written(struct writer *w)
{
	return atomic_load(WRITER_WORD(w, records));
}

/* The writer is idle, and everything has been read: the count must be complete. */
static void check_count(struct perfpersist_follow *f, size_t ring, struct writer *w)
{
	struct perfpersist_follow_stat stat = stat_of(f, ring);

	ck_assert_uint_eq(stat.begin + stat.read + stat.overwritten, written(w));
}

static void expect(struct perfpersist_follow *f, uint32_t cpu, uint32_t tid)
{
	struct perfpersist_sample s;

	ck_assert_int_eq(perfpersist_follow_next(f, &s), 1);
	ck_assert_uint_eq(s.cpu, cpu);
	ck_assert_uint_eq(s.tid, tid);
	ck_assert(writer_is_whole(&s));
}

static void expect_end(struct perfpersist_follow *f, int end)
{
	struct perfpersist_sample s;

	ck_assert_int_eq(perfpersist_follow_next(f, &s), end);
	ck_assert_int_eq(perfpersist_follow_next(f, &s), end);
}

/* ── What comes ─────────────────────────────────────────────────────────────────────────── */

START_TEST(test_only_new_ones)
{
	struct writer w[2] = { writer_new(4, 4096, 64), writer_new(1, 4096, 64) };
	struct perfpersist_event *e = writer_open(w, 2);
	struct perfpersist_follow *f;

	for (uint32_t i = 0; i < 10; i++)
		writer_write(&w[i % 2], i, i, 4);
	f = follow(e, 0);
	perfpersist_event_free(e); /* the follower keeps what it needs */
	expect_end(f, 0);
	writer_write(&w[0], 101, 103, 4);
	writer_write(&w[1], 102, 102, 4);
	writer_write(&w[1], 103, 104, 4);
	expect(f, 1, 102);
	writer_write(&w[1], 104, 1, 4); /* the next round's, whatever its time */
	expect(f, 4, 101);
	expect(f, 1, 103);
	expect(f, 1, 104);
	expect_end(f, 0);
	ck_assert_uint_eq(stat_of(f, 0).begin, 5);
	ck_assert_uint_eq(stat_of(f, 0).read, 1);
	ck_assert_uint_eq(stat_of(f, 1).read, 3);
	ck_assert_uint_eq(stat_of(f, 1).overwritten, 0);
	check_count(f, 0, &w[0]);
	check_count(f, 1, &w[1]);
	perfpersist_follow_free(f);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* The newest n of all rings together, from any ring; then the following ones. */
START_TEST(test_newest)
{
	static const size_t newest[] = { 1, 2, 5, 10, 11, 100, SIZE_MAX };
	size_t n = MIN(newest[_i], (size_t)10);
	struct writer w[3] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64),
			       writer_new(2, 4096, 64) };
	struct perfpersist_event *e = writer_open(w, 3);
	struct perfpersist_follow *f;

	for (uint32_t i = 0; i < 10; i++) /* ring 0 has most records, and the oldest */
		writer_write(&w[i < 6 ? 0 : i % 3], i, i, 4);
	f = follow(e, newest[_i]);
	writer_write(&w[2], 10, 10, 4);
	for (uint32_t i = 10 - (uint32_t)n; i < 10; i++)
		expect(f, i < 6 ? 0 : i % 3, i);
	expect(f, 2, 10);
	expect_end(f, 0);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(stat_of(f, i).overwritten, 0);
		check_count(f, i, &w[i]);
	}
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	for (size_t i = 0; i < 3; i++)
		writer_done(&w[i]);
}
END_TEST

START_TEST(test_several_sources)
{
	_cleanup_close_ int catalog = writer_catalog(3);
	struct writer w = writer_new_shared(0, 4096, 64, 3);
	int fds[] = { w.fd, catalog };
	struct perfpersist_event *e = NULL;
	struct perfpersist_follow *f;
	struct perfpersist_sample s;

	ck_assert_int_eq(perfpersist_open_fds(fds, 2, &e), 0);
	f = follow(e, 0);
	for (uint32_t i = 0; i < 30; i++)
		writer_write_source(&w, i % 3, i, i);
	for (uint32_t i = 0; i < 30; i++) {
		ck_assert_int_eq(perfpersist_follow_next(f, &s), 1);
		ck_assert_uint_eq(s.tid, i);
		ck_assert_uint_eq(s.source, i % 3);
	}
	writer_write_as(&w, 12345, 0, 1, 1); /* of no source */
	writer_write_source(&w, 1, 2, 2);
	expect_end(f, -EBADMSG);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* ── What is overwritten ────────────────────────────────────────────────────────────────── */

/*
 * Bursts of any size between two looks, with records of any size: the follower returns the newest
 * that a ring can hold, and counts all others.
 */
START_TEST(test_bursts)
{
	struct writer w = writer_new(0, 4096, 160);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_follow *f;
	struct perfpersist_sample s;
	uint64_t seed = 7, overwritten = 0;
	uint32_t tid = 0, last;

	for (; tid < 50; tid++)
		writer_write(&w, tid, tid, 4);
	f = follow(e, 0);
	for (int round = 0; round < 2000; round++) {
		uint32_t burst, n = 0, first = 0, before = tid;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		burst = (uint32_t)(seed >> 33) % (round % 3 ? 20 : 400);
		for (uint32_t i = 0; i < burst; i++, tid++)
			writer_write(&w, tid, tid, 4 + 8 * ((seed >> 40) % 16 + i) % 128);
		for (last = 0; perfpersist_follow_next(f, &s) == 1; n++, last = s.tid) {
			ck_assert(writer_is_whole(&s));
			if (n == 0)
				first = s.tid;
			ck_assert_uint_eq(s.tid, first + n);
		}
		ck_assert(burst == 0 ? n == 0 : last == tid - 1 && first >= before);
		ck_assert_uint_ge(n, MIN(burst, 4096U / 160 - 1));
		overwritten += burst - n;
		ck_assert_uint_eq(stat_of(f, 0).overwritten, overwritten);
	}
	ck_assert_uint_gt(overwritten, 10000);
	ck_assert_uint_eq(stat_of(f, 0).begin, 50);
	check_count(f, 0, &w);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* If a record is being written at every look, the count waits for a quiet moment. */
START_TEST(test_never_still)
{
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct writer_record r;
	struct perfpersist_follow *f;
	struct perfpersist_sample s;
	size_t n = writer_make(&r, 1, 1, 4), read = 0;
	uint64_t at = writer_reserve(&w, n);

	/* Even at the beginning: the follower cannot know whether it is counted already. */
	if (_i)
		atomic_fetch_add(WRITER_WORD(&w, records), 1);
	f = follow(e, 0);
	if (_i)
		atomic_fetch_sub(WRITER_WORD(&w, records), 1);
	writer_commit(&w, at, &r, n);
	while (perfpersist_follow_next(f, &s) == 1)
		read++;
	ck_assert_uint_eq(read, 1);
	ck_assert_uint_eq(stat_of(f, 0).begin, 0);

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 300; i++)
			writer_write(&w, i, i, 4);
		at = writer_reserve(&w, n);
		while (perfpersist_follow_next(f, &s) == 1)
			read++;
		ck_assert_uint_eq(stat_of(f, 0).overwritten, 0);
		writer_commit(&w, at, &r, n);
	}
	while (perfpersist_follow_next(f, &s) == 1)
		read++;
	ck_assert_uint_eq(stat_of(f, 0).read, read);
	ck_assert_uint_eq(stat_of(f, 0).overwritten, 1 + 3 * 301 - read);
	check_count(f, 0, &w);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* ── Writers at full speed ──────────────────────────────────────────────────────────────── */

#define CONCURRENT_RECORDS 200000

static void *write_many(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 1; i <= CONCURRENT_RECORDS; i++)
		writer_write(w, i, i, 4 + 8 * (i % 16));
	return NULL;
}

/* The next record interrupts each one, and lies below it in the ring. */
static void *write_nested(void *arg)
{
	struct writer *w = arg;
	struct writer_record outer, inner;

	for (uint32_t i = 1; i <= CONCURRENT_RECORDS; i += 2) {
		size_t n = writer_make(&outer, i, i, 4 + 8 * (i % 16));
		size_t m = writer_make(&inner, i + 1, i + 1, 4 + 8 * ((i + 1) % 16));
		uint64_t at = writer_reserve(w, n);

		writer_commit(w, writer_reserve(w, m), &inner, m);
		writer_commit(w, at, &outer, n);
	}
	return NULL;
}

START_TEST(test_concurrent_writers)
{
	struct writer w[2] = { writer_new(0, 4096UL << (3 * _i), 256),
			       writer_new(1, 4096UL << (3 * _i), 256) };
	struct perfpersist_event *e = writer_open(w, 2);
	struct perfpersist_follow *f = follow(e, 0);
	struct perfpersist_sample s;
	uint32_t last[2] = { 0, 0 };
	uint64_t read[2] = { 0, 0 };
	pthread_t threads[2];

	ck_assert_int_eq(pthread_create(&threads[0], NULL, write_many, &w[0]), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, write_nested, &w[1]), 0);
	while (last[0] < CONCURRENT_RECORDS || last[1] < CONCURRENT_RECORDS) {
		int r = perfpersist_follow_next(f, &s);

		if (r == 0) {
			sched_yield(); /* the writer may have to wait for the CPU */
			continue;
		}
		if (r < 0 || s.tid <= last[s.cpu] || s.raw_size != 4 + 8 * (s.tid % 16) ||
		    !writer_is_whole(&s)) /* each ck_assert() is a system call */
			ck_abort_msg("behind record %u: %d, record %u of %zu bytes", last[s.cpu], r,
				     s.tid, s.raw_size);
		last[s.cpu] = s.tid;
		read[s.cpu]++;
	}
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	expect_end(f, 0);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(stat_of(f, i).begin, 0);
		ck_assert_uint_eq(stat_of(f, i).read, read[i]);
		ck_assert_uint_eq(stat_of(f, i).overwritten, CONCURRENT_RECORDS - read[i]);
	}
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* ── Rings that lie ─────────────────────────────────────────────────────────────────────── */

START_TEST(test_forged_words)
{
	static const uint64_t words[] = {
		1,     8,	   4096, -8,	     -64,	    -4096,	-6400,
		-4104, 1ULL << 63, -24,	 1ULL << 32, -(1ULL << 32), UINT64_MAX, 0x12345678abc,
		0
	};

	for (size_t i = 0; i < ARRAY_SIZE(words) * ARRAY_SIZE(words); i++) {
		struct writer w = writer_new(0, 4096, 64);
		struct perfpersist_event *e = writer_open(&w, 1);
		struct perfpersist_follow *f;
		struct perfpersist_sample s;
		size_t n = 0;

		for (uint32_t k = 1; k <= 200; k++)
			writer_write(&w, k, k, 4);
		f = follow(e, i % 3);
		for (int round = 0; round < 3; round++) {
			while (perfpersist_follow_next(f, &s) == 1)
				n++;
			atomic_store(WRITER_WORD(&w, head), words[i / ARRAY_SIZE(words)]);
			atomic_store(WRITER_WORD(&w, reserve), words[i % ARRAY_SIZE(words)]);
		}
		ck_assert_uint_le(n, 2 + 2 * 4096 / 8);
		ck_assert_uint_le(perfpersist_follow_delay(f), 100000000);
		stat_of(f, 0);
		perfpersist_follow_free(f);
		perfpersist_event_free(e);
		writer_done(&w);
	}
}
END_TEST

/* The follower returns the records that are newer than the damage, then none. */
START_TEST(test_damaged)
{
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	struct perfpersist_event *e = writer_open(w, 2);
	struct perfpersist_follow *f = follow(e, 0);

	for (uint32_t i = 0; i < 5; i++)
		writer_write(&w[0], i, i, 4);
	memset(w[0].ring + PP_RING_PAGE + 4096 - 3 * 32, 0xff, 32); /* tid 2 */
	writer_write(&w[1], 9, 9, 4);
	expect(f, 0, 3);
	expect(f, 0, 4);
	expect(f, 1, 9);
	writer_write(&w[1], 10, 10, 4);
	expect_end(f, -EBADMSG);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* ── Waiting ────────────────────────────────────────────────────────────────────────────── */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

START_TEST(test_delay)
{
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_follow *f = follow(e, 0);
	struct perfpersist_sample s;
	uint64_t began, delay;

	expect_end(f, 0);
	delay = perfpersist_follow_delay(f);
	ck_assert_uint_ge(delay, 1000000);
	ck_assert_uint_le(delay, 100000000);
	ck_assert_uint_eq(perfpersist_follow_delay(f), delay);

	/* The follower looks at a ring that wraps 64 times during one look before it wraps again.
	 * (One more look would find nothing, and would measure that if it came a millisecond
	 * later.) */
	began = now();
	f = (perfpersist_follow_free(f), follow(e, 0));
	for (uint32_t i = 0; i < 64 * 128; i++)
		writer_write(&w, i, i, 4);
	while (now() - began < 2000000)
		;
	ck_assert_int_eq(perfpersist_follow_next(f, &s), 1);
	ck_assert_uint_le(perfpersist_follow_delay(f), (now() - began) / 64 / 4);
	perfpersist_follow_free(f);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("follow");
	TCase *tc = tcase_create("follow");

	tcase_add_test(tc, test_only_new_ones);
	tcase_add_loop_test(tc, test_newest, 0, 7);
	tcase_add_test(tc, test_several_sources);
	tcase_add_test(tc, test_bursts);
	tcase_add_loop_test(tc, test_never_still, 0, 2);
	tcase_add_loop_test(tc, test_concurrent_writers, 0, 4);
	tcase_add_test(tc, test_forged_words);
	tcase_add_test(tc, test_damaged);
	tcase_add_test(tc, test_delay);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
