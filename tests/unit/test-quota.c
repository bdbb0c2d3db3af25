// SPDX-License-Identifier: LGPL-2.1-or-later
/* The quota: every limit, reached, released and reached again; and the charges of events. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/state/charges.h"
#include "daemon/broker/state/quota.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static struct quota q;
static char sentence[256];

static void setup(void)
{
	quota_init(&q);
}

static void said(const char *what)
{
	quota_sentence(&q, sentence, sizeof(sentence));
	ck_assert_msg(strstr(sentence, what), "'%s' is not in: %s", what, sentence);
}

START_TEST(users_have_limits)
{
	q.total.max[QUOTA_CONNECTIONS] = 3;
	q.per_user.max[QUOTA_CONNECTIONS] = 2;
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 1, NULL, 1), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 1, NULL, 1), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 1, NULL, 1), -EDQUOT);
	said("User 1 has 2 connections");
	said("MaxConnectionsPerUser=");
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 2, NULL, 1), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 3, NULL, 1), -EDQUOT);
	said("This daemon has 3 connections");
	said("MaxConnections=");
	/* No limit applies to root. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 0, NULL, 1), 0);
	quota_release(&q, QUOTA_CONNECTIONS, 0, NULL, 3);
	quota_release(&q, QUOTA_CONNECTIONS, 1, NULL, 1);
	ck_assert_int_eq(quota_charge(&q, QUOTA_CONNECTIONS, 3, NULL, 1), 0);
	quota_release(&q, QUOTA_CONNECTIONS, 1, NULL, 1);
	quota_release(&q, QUOTA_CONNECTIONS, 3, NULL, 1);
	quota_release(&q, QUOTA_CONNECTIONS, 2, NULL, 1);
	quota_done(&q);
}
END_TEST

START_TEST(memory_binds_root_too)
{
	q.total.max[QUOTA_MEMORY] = 1000 << 20;
	q.per_namespace.max[QUOTA_MEMORY] = 900 << 20;
	q.per_user.max[QUOTA_MEMORY] = 100 << 20;
	q.root.max[QUOTA_MEMORY] = 1000 << 20;
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 5, "a", 100 << 20), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 5, "a", 1), -EDQUOT);
	said("User 5 has 100 MiB");
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 0, "a", 801 << 20), -EDQUOT);
	said("The namespace a has 100 MiB");
	said("801 MiB more");
	said("MaxMemoryPerNamespace=");
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 0, "a", 800 << 20), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 0, "b", 101 << 20), -EDQUOT);
	said("This daemon has 900 MiB");
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 0, "b", UINT64_MAX), -EDQUOT);
	/* Existing events may exceed any limit. */
	ck_assert_int_eq(quota_take(&q, QUOTA_MEMORY, 5, "a", 500 << 20), 0);
	ck_assert_uint_eq(q.sum.used[QUOTA_MEMORY], 1400 << 20);
	ck_assert_int_eq(quota_charge(&q, QUOTA_MEMORY, 0, "b", 1), -EDQUOT);
	quota_release(&q, QUOTA_MEMORY, 5, "a", 600 << 20);
	quota_release(&q, QUOTA_MEMORY, 0, "a", 800 << 20);
	quota_done(&q);
}
END_TEST

START_TEST(namespaces_can_have_limits_of_their_own)
{
	struct quota_limits own;

	memset(&own, 0xff, sizeof(own));
	own.max[QUOTA_EVENTS] = 2;
	q.per_namespace.max[QUOTA_EVENTS] = 1;
	ck_assert_int_eq(quota_limit(&q, "a", &own), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_EVENTS, 7, "a", 2), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_EVENTS, 7, "a", 1), -EDQUOT);
	said("have the MaxEvents= of its section raised");
	ck_assert_int_eq(quota_charge(&q, QUOTA_EVENTS, 7, "b", 1), 0);
	ck_assert_int_eq(quota_charge(&q, QUOTA_EVENTS, 7, "b", 1), -EDQUOT);
	said("MaxEventsPerNamespace=");
	quota_release(&q, QUOTA_EVENTS, 7, "a", 2);
	/* An empty namespace keeps its limit. */
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "a"), 2);
	ck_assert_int_eq(quota_limit(&q, "a", NULL), 0);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "a"), 1);
	quota_release(&q, QUOTA_EVENTS, 7, "b", 1);
	ck_assert_uint_eq(q.namespaces.n, 0);
	quota_done(&q);
}
END_TEST

/* Thousands of charges in random order, of many users and namespaces: nothing is left at the
 * end. */
START_TEST(exactly_zero)
{
	enum { N = 4000 };
	static struct {
		uint32_t uid;
		enum quota_kind kind;
		char ns[8];
		uint64_t amount;
	} charges[N];

	srand(1);
	for (unsigned i = 0; i < N; i++) {
		charges[i].uid = rand() % 50;
		charges[i].kind = rand() % QUOTA_KINDS;
		charges[i].amount = rand() % 1000;
		if (rand() % 2)
			snprintf(charges[i].ns, sizeof(charges[i].ns), "n%d", rand() % 40);
		ck_assert_int_eq(quota_charge(&q, charges[i].kind, charges[i].uid,
					      charges[i].ns[0] ? charges[i].ns : NULL,
					      charges[i].amount),
				 0);
	}
	ck_assert_uint_eq(q.users.n, 50);
	ck_assert_uint_eq(q.namespaces.n, 40);
	for (unsigned i = 0; i < N; i++) {
		unsigned k = (i * 1237) % N;

		quota_release(&q, charges[k].kind, charges[k].uid,
			      charges[k].ns[0] ? charges[k].ns : NULL, charges[k].amount);
	}
	ck_assert_uint_eq(q.users.n, 0);
	ck_assert_uint_eq(q.namespaces.n, 0);
	quota_done(&q);
}
END_TEST

START_TEST(what_is_left_is_our_bug)
{
	ck_assert_int_eq(quota_charge(&q, QUOTA_EVENTS, 7, NULL, 1), 0);
	quota_done(&q);
}
END_TEST

/* ── charges ────────────────────────────────────────────────────────────────────────────── */

static struct event event_of(uint32_t creator, uint64_t data_size)
{
	struct event e = { .state = PP_EVENT_CREATING };

	e.truth.spec = (struct pp_spec){
		.ns = "a",
		.name = "x",
		.creator = creator,
		.data_size = data_size,
	};
	pp_cpumask_set(&e.truth.spec.cpus, 0);
	pp_cpumask_set(&e.truth.spec.cpus, 70);
	return e;
}

static struct pp_orphans orphans_of(uint64_t id, uint64_t bytes)
{
	return (struct pp_orphans){ .id = id, .bytes = bytes, .creator = 5, .ns = "a" };
}

START_TEST(estimated_settled_held_released)
{
	struct charges c = { .quota = &q };
	struct event e = event_of(5, 4096);
	struct pp_orphans r = orphans_of(9, 30000);
	uint64_t memory;

	ck_assert_int_eq(charges_estimate(&e.truth.spec, NULL, &memory), 0);
	ck_assert_uint_eq(memory, 2 * (4096 + 65536 + 16384));
	q.per_user.max[QUOTA_MEMORY] = memory - 1;
	ck_assert_int_eq(charges_begin(&c, &e, memory, 2, 9), -EDQUOT);
	ck_assert_uint_eq(q.users.n, 0);
	q.per_user.max[QUOTA_MEMORY] = memory;
	q.per_user.max[QUOTA_PROGRAMS] = 1;
	ck_assert_int_eq(charges_begin(&c, &e, memory, 2, 9), -EDQUOT);
	ck_assert_uint_eq(q.users.n, 0);
	q.per_user.max[QUOTA_PROGRAMS] = 2;
	q.per_user.max[QUOTA_SAMPLES] = 8;
	ck_assert_int_eq(charges_begin(&c, &e, memory, 2, 9), -EDQUOT);
	said("MaxSampleRatePerUser=");
	ck_assert_uint_eq(q.users.n, 0);
	q.per_user.max[QUOTA_SAMPLES] = 9;
	ck_assert_uint_eq(charges_allow(&c, 5, 0).sources, 2);
	ck_assert_int_eq(charges_begin(&c, &e, memory, 2, 9), 0);
	ck_assert_uint_eq(quota_user(&q, 5)->used[QUOTA_SAMPLES], 9);
	ck_assert_uint_eq(charges_allow(&c, 5, 0).sources, 0);
	ck_assert_uint_eq(charges_allow(&c, 5, 2).sources, 2);
	e.truth.memory = 30000;
	charges_settle(&c, &e);
	ck_assert_uint_eq(quota_user(&q, 5)->used[QUOTA_MEMORY], 30000);
	ck_assert_uint_eq(quota_namespace(&q, "a")->used[QUOTA_EVENTS], 1);
	/* Deleted, but still mapped. */
	ck_assert_int_eq(charges_hold(&c, &r, 1), 0);
	charges_end(&c, &e);
	charges_end(&c, &e);
	ck_assert_uint_eq(quota_user(&q, 5)->used[QUOTA_MEMORY], 30000);
	ck_assert_uint_eq(quota_user(&q, 5)->held, 30000);
	ck_assert_uint_eq(q.sum.used[QUOTA_EVENTS], 0);
	r.bytes = 10000;
	charges_released(&c, &r);
	ck_assert_uint_eq(q.sum.held, 10000);
	/* The next reconciliation finds it, and the one after it does not. */
	ck_assert_int_eq(charges_hold(&c, &r, 2), 0);
	charges_sweep(&c, 2);
	ck_assert_uint_eq(q.sum.held, 10000);
	charges_sweep(&c, 3);
	ck_assert_uint_eq(q.sum.held, 0);
	charges_done(&c);
	quota_done(&q);
}
END_TEST

START_TEST(adopted_over_any_limit)
{
	struct charges c = { .quota = &q };
	struct event e = event_of(5, 4096);

	q.total.max[QUOTA_MEMORY] = q.total.max[QUOTA_EVENTS] = 0;
	e.truth.memory = 50000;
	ck_assert_int_eq(charges_adopt(&c, &e), 0);
	ck_assert_int_eq(charges_adopt(&c, &e), 0);
	ck_assert_uint_eq(q.sum.used[QUOTA_MEMORY], 50000);
	ck_assert_int_eq(charges_raise(&c, &e, 1), -EDQUOT);
	/* Under another name it belongs to that name's user. */
	e.truth.spec.creator = 6;
	ck_assert_int_eq(charges_adopt(&c, &e), 0);
	ck_assert_ptr_null(quota_user(&q, 5));
	ck_assert_uint_eq(quota_user(&q, 6)->used[QUOTA_MEMORY], 50000);
	charges_end(&c, &e);
	charges_done(&c);
	quota_done(&q);
}
END_TEST

START_TEST(many_orphans)
{
	struct charges c = { .quota = &q };
	struct pp_orphans unknown = orphans_of(5000, 1);

	for (uint64_t i = 0; i < 1000; i++) {
		struct pp_orphans r = orphans_of((i * 7) % 1000 + 1, i + 1);

		ck_assert_int_eq(charges_hold(&c, &r, 1), 0);
	}
	ck_assert_uint_eq(c.n_orphans, 1000);
	charges_released(&c, &unknown);
	for (uint64_t i = 0; i < 1000; i++) {
		struct pp_orphans r = orphans_of(i + 1, 0);

		charges_released(&c, &r);
		charges_released(&c, &r);
	}
	ck_assert_uint_eq(q.sum.used[QUOTA_MEMORY], 0);
	charges_done(&c);
	quota_done(&q);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("quota");
	TCase *t = tcase_create("limits");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, users_have_limits);
	tcase_add_test(t, memory_binds_root_too);
	tcase_add_test(t, namespaces_can_have_limits_of_their_own);
	tcase_add_test(t, exactly_zero);
	tcase_add_test_raise_signal(t, what_is_left_is_our_bug, SIGABRT);
	tcase_add_test(t, estimated_settled_held_released);
	tcase_add_test(t, adopted_over_any_limit);
	tcase_add_test(t, many_orphans);
	suite_add_tcase(s, t);
	return run_suite(s);
}
