// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bytes that checkpoints may write: nobody exceeds the limit, and others than root not its half. */
#include "client/perfctl/events/budget.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define SECOND 1000000000ULL
#define RATE (1U << 20)
#define TIME 1000 /* s */

/* Writes all that it may in 1000 seconds: `bytes` at a time. Returns how many bytes it was charged for. */
static uint64_t run(struct budget *b, uint64_t rate, bool of_root, uint64_t bytes,
		    unsigned *ret_writes)
{
	uint64_t now = 5 * SECOND, charged = 0;

	*ret_writes = 0;
	budget_init(b, rate, now);
	while (now < (5 + TIME) * SECOND) {
		uint64_t ready = budget_ready(b, of_root);

		if (ready > now) {
			now = ready;
			budget_refill(b, now);
			ck_assert_uint_le(budget_ready(b, of_root), now);
			continue;
		}
		ck_assert_uint_gt(budget_allowed(b, of_root), 0);
		budget_spend(b, of_root, MIN(bytes, budget_share(b, of_root, 1)));
		charged += MAX(bytes, BUDGET_WRITE);
		++*ret_writes;
	}
	return charged;
}

START_TEST(test_limit)
{
	const uint64_t all = (uint64_t)RATE * (TIME + 10);
	struct budget b;
	unsigned n;

	ck_assert_uint_le(run(&b, RATE, true, BUDGET_WRITE, &n), all + BUDGET_WRITE);
	ck_assert_uint_ge(n, RATE / BUDGET_WRITE * TIME);
	ck_assert_uint_le(run(&b, RATE, false, BUDGET_WRITE, &n), all / 2 + BUDGET_WRITE);
	ck_assert_uint_ge(n, RATE / 2 / BUDGET_WRITE * TIME);
}
END_TEST

/* Syncs are not free: a write of a byte is charged, too. */
START_TEST(test_small_writes)
{
	struct budget b;
	unsigned n;

	run(&b, RATE, true, 1, &n);
	ck_assert_uint_le(n, RATE / BUDGET_WRITE * (TIME + 10) + 1);
	/* With a limit below that there is one now and then. */
	run(&b, 100, true, 1, &n);
	ck_assert_uint_ge(n, TIME / 10);
	run(&b, 1, false, 1, &n);
	ck_assert_uint_ge(n, TIME / 10);
}
END_TEST

/* When others have used up what is theirs, root has its half. */
START_TEST(test_root)
{
	struct budget b;

	budget_init(&b, RATE, 0);
	for (unsigned i = 0; i < 1000 && budget_ready(&b, false) <= b.counted; i++)
		budget_spend(&b, false, BUDGET_WRITE);
	ck_assert_uint_lt(budget_allowed(&b, false), BUDGET_WRITE);
	ck_assert_uint_eq(budget_allowed(&b, true), 5 * RATE);
	ck_assert_uint_le(budget_ready(&b, true), b.counted);
	/* And what root uses up is used up for all. */
	budget_init(&b, RATE, 0);
	budget_spend(&b, true, 10 * RATE);
	ck_assert_uint_eq(budget_allowed(&b, false), 0);
	ck_assert_uint_gt(budget_ready(&b, false), b.counted);
}
END_TEST

START_TEST(test_shares)
{
	struct budget b;

	budget_init(&b, RATE, 0);
	ck_assert_uint_eq(budget_share(&b, true, 1), 10 * RATE);
	ck_assert_uint_eq(budget_share(&b, true, 4), 10 * RATE / 4);
	ck_assert_uint_eq(budget_share(&b, false, 4), 5 * RATE / 4);
	/* Rather one of many than a piece of each. */
	ck_assert_uint_eq(budget_share(&b, true, 1000000), BUDGET_WRITE);
	budget_spend(&b, true, 10 * RATE - 100);
	ck_assert_uint_eq(budget_share(&b, true, 1000000), 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("budget");
	TCase *tc = tcase_create("budget");

	tcase_add_test(tc, test_limit);
	tcase_add_test(tc, test_small_writes);
	tcase_add_test(tc, test_root);
	tcase_add_test(tc, test_shares);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
