// SPDX-License-Identifier: LGPL-2.1-or-later
/* The statistics of `report --against`: noise of every kind says nothing, a change comes first. */
#include <math.h>
#include <string.h>

#include "client/perfctl/replay/compare.h"
#include "tests/unit/needs.h"

#define SECOND UINT64_C(1000000000)

static struct compare *c;
static uint64_t seed;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double exponential(double mean)
{
	return -mean * log(uniform());
}

static unsigned poisson(double mean)
{
	unsigned n = 0;

	for (double t = exponential(1); t < mean; t += exponential(1))
		n++;
	return n;
}

/* The moment is from 1000 s on. */
static void begin(uint64_t length, uint64_t before)
{
	struct compare_grid g = compare_grid(1000 * SECOND, 1000 * SECOND + length, before);

	ck_assert_int_eq(compare_new(&g, &c), 0);
}

static void teardown(void)
{
	compare_free(c);
	c = NULL;
}

static struct compare_item *item(enum compare_class class, const char *what, uint64_t complete)
{
	struct compare_item *i;
	uint32_t name;

	ck_assert_int_eq(compare_name(c, what, &name), 0);
	ck_assert_int_eq(compare_find(c, class, name, COMPARE_NO_NAME, complete, &i), 0);
	return i;
}

static void count(enum compare_class class, const char *what, double at, unsigned n, double ns)
{
	ck_assert_int_eq(
		compare_count(c, item(class, what, 0), (uint64_t)(at * 1e9), n, (uint64_t)ns), 0);
}

static size_t changes(const struct compare_change **ret)
{
	size_t n;

	size_t unusual = 0;

	ck_assert_int_eq(compare_finish(c), 0);
	*ret = compare_changes(c, &n);
	while (unusual < n && (*ret)[unusual].is_unusual)
		unusual++;
	return unusual;
}

static const char *name_of(const struct compare_change *change)
{
	return compare_text(c, change->item->what);
}

/* ── Noise ── */

enum noise { STEADY, RARE, BURSTY, HEAVY, NOISES };

/* What an item does in a second. */
static void add_noise(enum noise noise, enum compare_class class, const char *name, double at,
		      double scale)
{
	unsigned n;

	switch (noise) {
	case STEADY:
		n = poisson(20 * scale);
		if (n)
			count(class, name, at, n, 5e5 * n);
		break;
	case RARE:
		n = poisson(0.02 * scale);
		if (n)
			count(class, name, at, n, 2e7 * n);
		break;
	case BURSTY: /* once in ten seconds, many */
		if (uniform() < 0.1)
			count(class, name, at, 1 + poisson(exponential(200 * scale)),
			      exponential(1e8 * scale));
		break;
	default: /* without a mean */
		count(class, name, at, 1, 1e6 * scale / pow(uniform(), 0.8));
	}
}

static void add_quiet(enum noise noise, unsigned n_items, double since, double until)
{
	static const enum compare_class classes[] = { COMPARE_CPU_TIME, COMPARE_RECORDS,
						      COMPARE_WAITED_WORST, COMPARE_BEGUN };

	for (double at = since + 0.5; at < until; at++)
		for (unsigned i = 0; i < n_items; i++) {
			char name[32];

			snprintf(name, sizeof(name), "item %u", i);
			add_noise(noise, classes[i % ARRAY_SIZE(classes)], name, at,
				  1 + i % 7 / 3.0);
		}
}

/* How many of 50 quiet moments report something. */
static unsigned cry(enum noise noise, uint64_t length, uint64_t before)
{
	const struct compare_change *all;
	unsigned cries = 0;

	for (unsigned round = 0; round < 50; round++) {
		seed = 88172645463325252 + round * 7919;
		begin(length * SECOND, before * SECOND);
		add_quiet(noise, 60, 1000 - (double)before, 1000 + (double)length);
		cries += changes(&all) > 0;
		teardown();
	}
	return cries;
}

/* The last noise has no variance, and 20 s are no long past: of these some are lines. */
START_TEST(quiet)
{
	static const unsigned most[NOISES][2] = { { 0, 0 }, { 1, 1 }, { 1, 1 }, { 3, 12 } };
	unsigned long_past = cry(_i, 10, 300), short_past = cry(_i, 10, 20);

	printf("noise %d: %u and (little past) %u of 50 quiet moments report something\n", _i,
	       long_past, short_past);
	fflush(stdout);
	ck_assert_uint_le(long_past, most[_i][0]);
	ck_assert_uint_le(short_past, most[_i][1]);
}
END_TEST

/* ── Changes ── */

/* All noises, and a moment of 10 s after 300 s, or (short) after 20 s. */
static void begin_noisy(bool is_short)
{
	uint64_t before = is_short ? 20 : 300;

	seed = 88172645463325252;
	begin(10 * SECOND, before * SECOND);
	for (enum noise noise = STEADY; noise < HEAVY; noise++)
		add_quiet(noise, 20, 1000 - (double)before, 1010);
}

static void expect_first(const char *name)
{
	const struct compare_change *all;
	size_t n = changes(&all);

	ck_assert_uint_ge(n, 1);
	ck_assert_str_eq(name_of(&all[0]), name);
}

/* A new one takes half of a CPU. */
START_TEST(new_comes_first)
{
	const struct compare_change *all;
	size_t n;

	begin_noisy(_i);
	count(COMPARE_CPU_TIME, "hog", 1003, 1, 5e9);
	expect_first("hog");
	all = compare_changes(c, &n);
	ck_assert(all[0].is_new);
	ck_assert_double_eq_tol(all[0].now, 5e8, 1);
	ck_assert_double_eq_tol(all[0].excess, 5e8, 1);
	ck_assert_uint_eq(all[0].slices, _i ? 10 : 30);
}
END_TEST

/* Something is always there, and takes three times as much. */
START_TEST(more_of_the_same)
{
	const struct compare_change *all;
	size_t n;

	begin_noisy(false);
	for (double at = 700.5; at < 1010; at++)
		count(COMPARE_CPU_TIME, "server", at, 1, at < 1000 ? 2e8 + 1e7 * uniform() : 6e8);
	expect_first("server");
	all = compare_changes(c, &n);
	ck_assert(!all[0].is_new);
	ck_assert_double_eq_tol(all[0].median, 2.05e8, 1e7);
	ck_assert_double_gt(all[0].distance, 5);
}
END_TEST

START_TEST(what_is_gone)
{
	const struct compare_change *all;

	begin(10 * SECOND, 300 * SECOND);
	for (double at = 700.5; at < 1000; at++)
		count(COMPARE_CPU_TIME, "server", at, 1, 2e8 + 1e7 * uniform());
	ck_assert_uint_eq(changes(&all), 1);
	ck_assert_double_lt(all[0].excess, 0);
	ck_assert_double_eq_tol(all[0].now, 0, 1);
}
END_TEST

/* From 3 to 9 us/s is a factor of three, and nothing; 300 ms come first. */
START_TEST(by_time)
{
	const struct compare_change *all;

	begin(10 * SECOND, 300 * SECOND);
	for (double at = 700.5; at < 1010; at++) {
		count(COMPARE_CPU_TIME, "small", at, 1, at < 1000 ? 3e3 : 9e3);
		count(COMPARE_CPU_TIME, "medium", at, 1, at < 1000 ? 1e6 : 9e6);
		count(COMPARE_CPU_TIME, "large", at, 1, at < 1000 ? 2e8 : 5e8);
	}
	ck_assert_uint_eq(changes(&all), 2);
	ck_assert_str_eq(name_of(&all[0]), "large");
	ck_assert_str_eq(name_of(&all[1]), "medium");
}
END_TEST

/* An incident in the past, of another item, is no reason to be silent. */
START_TEST(earlier_incident)
{
	begin_noisy(false);
	count(COMPARE_CPU_TIME, "backup", 855, 1, 9e9);
	count(COMPARE_CPU_TIME, "hog", 1003, 1, 5e9);
	expect_first("hog");
}
END_TEST

/* What happens now and then is not unusual when it happens again. */
START_TEST(now_and_then)
{
	const struct compare_change *all;

	begin(10 * SECOND, 300 * SECOND);
	for (double at = 710; at < 1010; at += 99)
		count(COMPARE_CPU_TIME, "cron", at, 1, 1e9);
	ck_assert_uint_eq(changes(&all), 0);
}
END_TEST

START_TEST(fatal_first)
{
	begin_noisy(false);
	count(COMPARE_CPU_TIME, "hog", 1003, 1, 5e9);
	count(COMPARE_FATAL, "SIGSEGV", 1003, 1, 0);
	expect_first("SIGSEGV");
}
END_TEST

/* One sleep of 50 ms where others have 1 ms. */
START_TEST(longest)
{
	const struct compare_change *all;

	begin(10 * SECOND, 300 * SECOND);
	for (uint64_t at = 700 * SECOND; at < 1010 * SECOND; at += 100000000) {
		uint64_t ns = at == 1005 * SECOND ? 50000000 : 1000000;

		ck_assert_int_eq(
			compare_span(c, item(COMPARE_CALLS_WORST, "waiter", 0), at, at + ns), 0);
	}
	ck_assert_uint_eq(changes(&all), 1);
	ck_assert_double_eq_tol(all[0].now, 5e7, 1);
	ck_assert_double_eq_tol(all[0].max, 1e6, 1);
}
END_TEST

/* ── Slices ── */

/* An event whose records begin 42 s before has 10 slices or more of its own. */
START_TEST(histories)
{
	static const struct {
		uint64_t before; /* s that are complete */
		uint32_t slices;
		uint64_t width; /* s */
	} cases[] = { { 300, 30, 10 }, { 100, 10, 10 }, { 99, 19, 5 }, { 42, 21, 2 },
		      { 10, 10, 1 },   { 5, 5, 1 },	{ 4, 0, 1 },   { 0, 0, 1 } };
	struct compare_grid g = compare_grid(1000 * SECOND, 1010 * SECOND, 300 * SECOND);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t width;

		ck_assert_uint_eq(compare_history(&g, (1000 - cases[i].before) * SECOND, &width),
				  cases[i].slices);
		ck_assert_uint_eq(width, cases[i].width * SECOND);
	}
}
END_TEST

START_TEST(many_slices)
{
	struct compare_grid g = compare_grid(SECOND << 20, (SECOND << 20) + 1000, SECOND << 19);

	ck_assert_uint_eq(g.n_before, COMPARE_SLICES);
	ck_assert_uint_eq(g.width, 1000);
}
END_TEST

/* A time is parted among its slices; what overlaps counts once. */
START_TEST(spans)
{
	struct compare_item *i;

	begin(10 * SECOND, 300 * SECOND);
	i = item(COMPARE_WAITED, "x", 0);
	ck_assert_int_eq(compare_span(c, i, 998 * SECOND + SECOND / 2, 1001 * SECOND - 1), 0);
	ck_assert_uint_eq(i->series.n, 3);
	ck_assert_uint_eq(i->series.cells[0].sum, SECOND / 2);
	ck_assert_uint_eq(i->series.cells[1].sum, SECOND);
	ck_assert_uint_eq(i->series.cells[2].sum, SECOND - 1);
	ck_assert_uint_eq(i->series.cells[0].n + i->series.cells[1].n, 0);
	ck_assert_uint_eq(i->series.cells[2].max, 5 * SECOND / 2 - 1);
	i = item(COMPARE_REQUESTS, "y", 0);
	ck_assert_int_eq(compare_cover(c, i, 990 * SECOND, 990 * SECOND + 10), 0);
	ck_assert_int_eq(compare_cover(c, i, 990 * SECOND + 5, 990 * SECOND + 15), 0);
	ck_assert_int_eq(compare_cover(c, i, 990 * SECOND + 2, 990 * SECOND + 15), 0);
	ck_assert_uint_eq(i->series.cells[0].sum, 15);
	/* One that lasts, with others inside. */
	i = item(COMPARE_REQUESTS, "z", 0);
	for (unsigned k = 1; k < 4; k++)
		ck_assert_int_eq(
			compare_cover(c, i, 990 * SECOND + 10 * k, 990 * SECOND + 10 * k + 1), 0);
	ck_assert_int_eq(compare_cover(c, i, 990 * SECOND, 990 * SECOND + 100), 0);
	ck_assert_uint_eq(i->series.cells[0].sum, 100);
	ck_assert_uint_eq(i->series.cells[0].n, 4);
	/* More than are remembered: no time counts twice. */
	i = item(COMPARE_REQUESTS, "v", 0);
	for (unsigned k = 1; k < 9; k++)
		ck_assert_int_eq(
			compare_cover(c, i, 990 * SECOND + 10 * k, 990 * SECOND + 10 * k + 1), 0);
	ck_assert_int_eq(compare_cover(c, i, 990 * SECOND, 990 * SECOND + 100), 0);
	ck_assert_uint_le(i->series.cells[0].sum, 100);
	ck_assert_uint_ge(i->series.cells[0].sum, 100 - 10 * (8 - COMPARE_COVERED + 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("compare");
	TCase *t = tcase_create("compare");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, quiet, 0, NOISES);
	tcase_add_loop_test(t, new_comes_first, 0, 2);
	tcase_add_test(t, more_of_the_same);
	tcase_add_test(t, what_is_gone);
	tcase_add_test(t, by_time);
	tcase_add_test(t, earlier_incident);
	tcase_add_test(t, now_and_then);
	tcase_add_test(t, fatal_first);
	tcase_add_test(t, longest);
	tcase_add_test(t, histories);
	tcase_add_test(t, many_slices);
	tcase_add_test(t, spans);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
