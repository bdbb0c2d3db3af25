// SPDX-License-Identifier: LGPL-2.1-or-later
/* stat and top, for an event between two looks: every count of it, and none of another event. */
#include "client/perfctl/print/rates.h"
#include "tests/unit/needs.h"

static const struct perfpersist_info info = {
	.records = 10, .bytes = 2000000, .missed = 30, .limited = 40
};

START_TEST(counts_are_those_of_the_event)
{
	struct counts c = counts_of(&info);

	ck_assert_uint_eq(c.records, 10);
	ck_assert_uint_eq(c.bytes, 2000000);
	ck_assert_uint_eq(c.missed, 30);
	ck_assert_uint_eq(c.limited, 40);
	ck_assert(!c.missed_unknown && !c.limited_unknown);
	c = counts_of(&(struct perfpersist_info){ .missed_unknown = true });
	ck_assert(c.missed_unknown);
}
END_TEST

START_TEST(rates_are_differences_over_time)
{
	struct counts now = { 110, 4000000, 230, 50, true, false, true };
	struct counts before = counts_of(&info), c = counts_since(&now, &before);
	struct rates r = rates_of(&c, 2);

	ck_assert(r.records == 50 && r.megabytes == 1 && r.missed == 100 && r.limited == 5);
	ck_assert(r.missed_unknown && r.limited_unknown);
	ck_assert_str_eq(format_missed_rate(&r).s, "unknown");
	r.missed_unknown = false;
	ck_assert_str_eq(format_missed_rate(&r).s, "100");
	r.missed_at_least = true;
	ck_assert_str_eq(format_missed_rate(&r).s, "100+");
}
END_TEST

/* A change of the buffer restarts them. */
START_TEST(other_rings_count_from_nothing)
{
	struct counts now = { 1, 2, 3, 4, false, false, false };
	struct counts before = counts_of(&info), c = counts_since(&now, &before);

	ck_assert(c.records == 1 && c.bytes == 2 && c.missed == 3 && c.limited == 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rates");
	TCase *t = tcase_create("all");

	tcase_add_test(t, counts_are_those_of_the_event);
	tcase_add_test(t, rates_are_differences_over_time);
	tcase_add_test(t, other_rings_count_from_nothing);
	suite_add_tcase(s, t);
	return run_suite(s);
}
