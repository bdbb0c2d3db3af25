// SPDX-License-Identifier: LGPL-2.1-or-later
/* The order in time of the records of several rings. */
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

struct expected {
	uint32_t cpu, tid;
};

static void check_merge(struct writer *w, size_t n_rings, enum perfpersist_order order,
			size_t newest, const struct expected *expected, size_t n, size_t damaged)
{
	struct perfpersist_event *e = writer_open(w, n_rings);
	struct perfpersist_snapshot *s = writer_snapshot(e);
	struct perfpersist_merge *m = NULL;
	struct perfpersist_sample sample;

	ck_assert_int_eq(perfpersist_merge_new(s, order, newest, &m), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(perfpersist_merge_next(m, &sample), 1);
		ck_assert_uint_eq(sample.tid, expected[i].tid);
		ck_assert_uint_eq(sample.cpu, expected[i].cpu);
		ck_assert(writer_is_whole(&sample));
	}
	ck_assert_int_eq(perfpersist_merge_next(m, &sample), 0);
	ck_assert_int_eq(perfpersist_merge_next(m, &sample), 0);
	ck_assert_uint_eq(perfpersist_merge_damaged(m), damaged);
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}

/* Also backward, completely and in part. */
static void check_both(struct writer *w, size_t n_rings, const struct expected *oldest_first,
		       size_t n)
{
	struct expected newest_first[64];

	ck_assert_uint_le(n, ARRAY_SIZE(newest_first));
	for (size_t i = 0; i < n; i++)
		newest_first[i] = oldest_first[n - 1 - i];
	check_merge(w, n_rings, PERFPERSIST_OLDEST_FIRST, 0, oldest_first, n, 0);
	check_merge(w, n_rings, PERFPERSIST_NEWEST_FIRST, 0, newest_first, n, 0);
	for (size_t part = 1; part <= n + 1; part++) {
		size_t some = MIN(part, n);

		check_merge(w, n_rings, PERFPERSIST_OLDEST_FIRST, part, oldest_first + n - some,
			    some, 0);
		check_merge(w, n_rings, PERFPERSIST_NEWEST_FIRST, part, newest_first, some, 0);
	}
}

START_TEST(test_order)
{
	struct writer w[3] = { writer_new(5, 4096, 64), writer_new(0, 4096, 64),
			       writer_new(1, 4096, 64) };
	static const struct expected expected[] = { { 5, 1 }, { 0, 2 }, { 0, 3 }, { 5, 4 },
						    { 0, 5 }, { 5, 6 }, { 5, 7 } };

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		writer_write(&w[expected[i].cpu == 5 ? 0 : 1], expected[i].tid, 10 * i, 4);
	check_both(w, 3, expected, ARRAY_SIZE(expected));
	for (size_t i = 0; i < 3; i++)
		writer_done(&w[i]);
}
END_TEST

START_TEST(test_same_time)
{
	struct writer w[2] = { writer_new(1, 4096, 64), writer_new(0, 4096, 64) };
	static const struct expected expected[] = { { 1, 1 }, { 1, 2 }, { 0, 3 }, { 0, 4 } };

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		writer_write(&w[i / 2], expected[i].tid, 10, 4);
	check_both(w, 2, expected, ARRAY_SIZE(expected));
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* Records of one ring keep their order, whatever their times. */
START_TEST(test_time_goes_backward)
{
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	static const uint64_t times[] = { 50, 10, 40, 40, 20 };
	struct perfpersist_event *e;
	struct perfpersist_snapshot *s;

	for (uint32_t i = 0; i < ARRAY_SIZE(times); i++) {
		writer_write(&w[0], 100 + i, times[i], 4);
		writer_write(&w[1], 200 + i, 30, 4);
	}
	e = writer_open(w, 2);
	s = writer_snapshot(e);
	for (int order = PERFPERSIST_OLDEST_FIRST; order <= PERFPERSIST_NEWEST_FIRST; order++) {
		uint32_t step = order == PERFPERSIST_OLDEST_FIRST ? 1 : UINT32_MAX;
		uint32_t next[2] = { 100, 200 };
		struct perfpersist_sample sample;
		struct perfpersist_merge *m = NULL;
		size_t n = 0;

		if (order == PERFPERSIST_NEWEST_FIRST)
			next[0] += 4, next[1] += 4;
		ck_assert_int_eq(perfpersist_merge_new(s, order, 0, &m), 0);
		for (; perfpersist_merge_next(m, &sample) == 1; n++) {
			ck_assert_uint_eq(sample.tid, next[sample.cpu]);
			next[sample.cpu] += step;
		}
		ck_assert_uint_eq(n, 10);
		perfpersist_merge_free(m);
	}
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

/* A damaged ring yields the records newer than the damage; the others yield all. */
START_TEST(test_damaged)
{
	struct writer w[2] = { writer_new(0, 4096, 64), writer_new(1, 4096, 64) };
	static const struct expected expected[] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 },
						    { 1, 3 }, { 0, 4 }, { 1, 4 } };

	for (uint32_t i = 0; i < 5; i++) {
		writer_write(&w[0], i, i, 4);
		writer_write(&w[1], i, i, 4);
	}
	memset(w[1].ring + PP_RING_PAGE + 4096 - 3 * 32, 0xff, 32); /* tid 2 */
	check_merge(w, 2, PERFPERSIST_OLDEST_FIRST, 0, expected, ARRAY_SIZE(expected), 1);
	check_merge(w, 2, PERFPERSIST_OLDEST_FIRST, 2, expected + 5, 2, 0);
	writer_done(&w[0]);
	writer_done(&w[1]);
}
END_TEST

START_TEST(test_bad_arguments)
{
	struct writer w = writer_new(0, 4096, 64);
	struct perfpersist_event *e = writer_open(&w, 1);
	struct perfpersist_snapshot *s = writer_snapshot(e);
	struct perfpersist_merge *m = NULL;
	struct perfpersist_sample sample;

	ck_assert_int_eq(perfpersist_merge_new(s, 2, 0, &m), -EINVAL);
	ck_assert_int_eq(perfpersist_merge_new(s, PERFPERSIST_NEWEST_FIRST, 0, &m), 0);
	ck_assert_int_eq(perfpersist_snapshot_take(s), 0);
	ck_assert_int_eq(perfpersist_merge_next(m, &sample), -ESTALE);
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	writer_done(&w);
}
END_TEST

/* Many rings and records: sorted, none lost, none twice. */
START_TEST(test_many)
{
	struct writer w[16];
	struct perfpersist_event *e;
	struct perfpersist_snapshot *s;
	struct perfpersist_merge *m = NULL;
	struct perfpersist_sample sample;
	uint64_t seed = 1;

	for (uint32_t i = 0; i < 16; i++)
		w[i] = writer_new(i, 1 << 20, 64);
	for (uint32_t i = 0; i < 100000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		writer_write(&w[seed >> 60], i, i, 4);
	}
	e = writer_open(w, 16);
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_merge_new(s, PERFPERSIST_OLDEST_FIRST, 0, &m), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		ck_assert_int_eq(perfpersist_merge_next(m, &sample), 1);
		ck_assert_uint_eq(sample.tid, i);
	}
	ck_assert_int_eq(perfpersist_merge_next(m, &sample), 0);
	perfpersist_merge_free(m);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	for (size_t i = 0; i < 16; i++)
		writer_done(&w[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("merge");
	TCase *tc = tcase_create("merge");

	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_same_time);
	tcase_add_test(tc, test_time_goes_backward);
	tcase_add_test(tc, test_damaged);
	tcase_add_test(tc, test_bad_arguments);
	tcase_add_test(tc, test_many);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
