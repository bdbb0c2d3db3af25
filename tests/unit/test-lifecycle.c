// SPDX-License-Identifier: LGPL-2.1-or-later
/* The link and the life of events: an engine that dies, returns, changes and lies. */
#include "tests/unit/broker-fixture.h"

static struct broker b;
static struct client root;

static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
}

static void teardown(void)
{
	client_end(&root);
	broker_end(&b);
}

static void be(enum fake_mood mood, unsigned times)
{
	b.engine.mood = mood;
	b.engine.moods = times;
}

START_TEST(failures_are_the_engines_own_words)
{
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(client_create(&root, "a", "x"), -E2BIG);
	ck_assert_str_eq(root.body.error.message, "The fake failed.");
	/* Nothing stays behind, neither name nor namespace. */
	ck_assert_uint_eq(b.lifecycle.registry.n_namespaces, 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(client_delete(&root, "a", "x"), -E2BIG);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
}
END_TEST

START_TEST(death_before_a_creation)
{
	be(FAKE_DIES_BEFORE, 1);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.engine.created, 1);
	ck_assert_uint_eq(b.engine.enumerated, 2);
}
END_TEST

/* What was carried out and not answered is found, not done again. */
START_TEST(death_after_a_creation)
{
	be(FAKE_DIES_AFTER, 1);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.id, 1);
	ck_assert_uint_eq(b.engine.created, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
}
END_TEST

START_TEST(death_again_and_again)
{
	be(FAKE_DIES_BEFORE, 2);
	ck_assert_int_eq(client_create(&root, "a", "x"), -EAGAIN);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	be(FAKE_DIES_BEFORE, 2);
	ck_assert_int_eq(client_delete(&root, "a", "x"), -EAGAIN);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
}
END_TEST

START_TEST(death_at_a_deletion)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	be(FAKE_DIES_BEFORE, 1);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	be(FAKE_DIES_AFTER, 1);
	ck_assert_int_eq(client_delete(&root, "a", "y"), 0);
	ck_assert_uint_eq(b.engine.deleted, 2);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 0);
}
END_TEST

START_TEST(orders_wait_for_an_engine_that_returns)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	fake_stop(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	/* Reading goes on. */
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	client_send_create(&root, "a", "y");
	broker_settle(&b);
	ck_assert(!client_has_reply(&root));
	fake_start(&b.engine);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_str_eq(root.body.event.name, "y");
	ck_assert_uint_eq(b.engine.created, 2);
}
END_TEST

/* While it was away events came and went: the model follows. */
START_TEST(reconciliation)
{
	struct pp_spec spec;

	ck_assert_int_eq(client_create(&root, "a", "kept"), 0);
	ck_assert_int_eq(client_create(&root, "a", "lost"), 0);
	ck_assert_int_eq(client_create(&root, "a", "replaced"), 0);
	spec = b.engine.events[0].spec;
	fake_stop(&b.engine);
	fake_unmake(&b.engine, 2);
	fake_unmake(&b.engine, 3);
	snprintf(spec.name, sizeof(spec.name), "replaced");
	fake_make(&b.engine, &spec);
	snprintf(spec.name, sizeof(spec.name), "new");
	fake_make(&b.engine, &spec);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	fake_start(&b.engine);
	broker_until(&b, orders_is_up(b.lifecycle.orders));

	ck_assert_int_eq(client_list(&root, "", 0), 0);
	ck_assert_uint_eq(root.body.list_reply.count, 3);
	ck_assert_str_eq(root.body.list_reply.events[0].name, "kept");
	ck_assert_str_eq(root.body.list_reply.events[1].name, "replaced");
	ck_assert_uint_eq(root.body.list_reply.events[1].id, 4);
	ck_assert_str_eq(root.body.list_reply.events[2].name, "new");
	ck_assert_int_eq(client_show(&root, "a", "lost"), -ENOENT);
}
END_TEST

/* A name that was reserved, never ordered, and is there all the same: somebody else's. */
START_TEST(found_before_it_was_ordered)
{
	struct pp_spec spec;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	spec = b.engine.events[0].spec;
	fake_stop(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	client_send_create(&root, "a", "y");
	broker_settle(&b);
	snprintf(spec.name, sizeof(spec.name), "y");
	fake_make(&b.engine, &spec);
	fake_start(&b.engine);
	ck_assert_int_eq(client_receive(&root), -EEXIST);
	ck_assert_int_eq(client_show(&root, "a", "y"), 0);
	ck_assert_uint_eq(root.body.event.id, 2);
}
END_TEST

/* Each lie breaks the link; the truth is then found by asking anew. */
START_TEST(lies)
{
	static const enum fake_mood moods[] = { FAKE_LIES_SIZE, FAKE_LIES_SERIAL, FAKE_LIES_ABI,
						FAKE_LIES_NAME };
	char name[8];

	for (size_t i = 0; i < ARRAY_SIZE(moods); i++) {
		unsigned before = b.engine.enumerated;

		snprintf(name, sizeof(name), "x%zu", i);
		be(moods[i], 1);
		ck_assert_int_eq(client_create(&root, "a", name), 0);
		ck_assert_uint_eq(b.engine.enumerated, before + 1);
		ck_assert_uint_eq(b.engine.created, i + 1);
	}
}
END_TEST

/* An engine that tells of two events with one name is not followed into nonsense. */
START_TEST(contradictions)
{
	struct pp_spec spec;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	spec = b.engine.events[0].spec;
	fake_make(&b.engine, &spec);
	fake_make(&b.engine, &spec);
	b.engine.events[2].id = 1;
	snprintf(b.engine.events[2].spec.name, PP_NAME_SIZE, "y");
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.id, 1);
}
END_TEST

START_TEST(ending_with_orders_under_way)
{
	fake_hold(&b.engine, true);
	client_send_create(&root, "a", "x");
	client_send_create(&root, "a", "y");
	broker_settle(&b);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 2);
	/* The teardown asserts that nothing is left. */
}
END_TEST

START_TEST(start_with_many)
{
	struct pp_spec spec;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	spec = b.engine.events[0].spec;
	for (unsigned i = 0; i < 200; i++) {
		snprintf(spec.name, sizeof(spec.name), "n%u", i);
		fake_make(&b.engine, &spec);
	}
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.lifecycle.registry.n_settled, 201);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lifecycle");
	TCase *t = tcase_create("engine");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, failures_are_the_engines_own_words);
	tcase_add_test(t, death_before_a_creation);
	tcase_add_test(t, death_after_a_creation);
	tcase_add_test(t, death_again_and_again);
	tcase_add_test(t, death_at_a_deletion);
	tcase_add_test(t, orders_wait_for_an_engine_that_returns);
	tcase_add_test(t, reconciliation);
	tcase_add_test(t, found_before_it_was_ordered);
	tcase_add_test(t, lies);
	tcase_add_test(t, contradictions);
	tcase_add_test(t, ending_with_orders_under_way);
	tcase_add_test(t, start_with_many);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
