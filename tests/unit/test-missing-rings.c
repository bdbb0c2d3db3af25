// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CPUs that come online, and the events that are to record on them. The fake engine makes rings on
 * CPUs 0 and 3; 0 to 3 are online.
 */
#include "broker-fixture.h"
#include "daemon/text.h"
#include "needs.h"

static struct broker b;
static struct client root, team;

static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, TEAM);
}

static void teardown(void)
{
	uint64_t takes = 0;

	for (size_t i = 0; i < b.engine.n; i++)
		takes += b.engine.events[i].memory;
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_MEMORY], takes);
	client_end(&root);
	client_end(&team);
	broker_end(&b);
}

static struct event *event_of(const char *name)
{
	struct event *e = registry_by_name(&b.lifecycle.registry, "a", name);

	ck_assert_ptr_nonnull(e);
	return e;
}

/* The event as a client sees it. */
static const struct pp_msg_event *shown(const char *name)
{
	ck_assert_int_eq(client_show(&root, "a", name), 0);
	return &root.body.event;
}

static void create_on(const char *name, const char *cpus)
{
	struct pp_msg_create_request request = {
		.ns = "a",
		.count = 1,
		.selections[0].event = "cpu-clock",
	};

	snprintf(request.name, sizeof(request.name), "%s", name);
	snprintf(request.cpus, sizeof(request.cpus), "%s", cpus);
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
}

static size_t orders_waiting(void)
{
	size_t n = 0;

	for (struct order *o = orders_first(b.lifecycle.orders); o; o = o->next)
		n++;
	return n;
}

/* ── what is ordered ────────────────────────────────────────────────────────────────────── */

START_TEST(those_that_want_them)
{
	create_on("all", "");
	create_on("listed", "0");
	ck_assert_int_eq(client_share(&root, "a", "second"), 0);
	ck_assert_uint_ne(root.body.event.shares, 0);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	/* The second one's CPU is online, and the engine knows what was lost. */
	ck_assert_uint_eq(b.engine.cpus, 2);
	ck_assert_mem_eq(&b.engine.last.spec.cpus, &b.hotplug.online, sizeof(struct pp_cpumask));
	ck_assert_str_eq(shown("all")->cpus, "0-3");
	ck_assert_str_eq(shown("listed")->cpus, "0,3");
	ck_assert_str_eq(shown("second")->cpus, "0-3");
	ck_assert_uint_eq(root.body.event.memory, 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 2); /* of both names */
	ck_assert_str_eq(shown("all")->lacking, "");
	/* Once more: no notice, because nothing changed. */
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.cpus, 4);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 2);
}
END_TEST

START_TEST(not_those_that_do_not)
{
	create_on("listed", "0");
	pp_cpumask_clear(&b.hotplug.online, 0);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.cpus, 0);
	ck_assert_str_eq(shown("listed")->away, "0");
	/* The fake has made a ring there all the same. */
	ck_assert_str_eq(root.body.event.cpus, "0,3");
}
END_TEST

/* One order at a time, and a paused event stays paused. */
START_TEST(one_after_the_other)
{
	char name[16];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		create_on(name, "");
	}
	ck_assert_int_eq(client_pause(&root, "a", "e7", true), 0);
	fake_wait(&b.engine, true);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(orders_waiting(), 1);
	client_send_create(&root, "a", "mine");
	broker_settle(&b);
	ck_assert_uint_eq(orders_waiting(), 2);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_lt(b.engine.cpus, 40);
	broker_settle(&b);
	/* The new event is younger than the CPUs, so the engine saw them itself. */
	ck_assert_uint_eq(b.engine.cpus, 40);
	ck_assert_uint_eq(shown("e7")->state, PP_EVENT_PAUSED);
	ck_assert_str_eq(root.body.event.cpus, "0-3");
}
END_TEST

START_TEST(one_that_is_being_created)
{
	fake_wait(&b.engine, true);
	client_send_create(&root, "a", "x");
	broker_settle(&b);
	missing_rings_add(&b.missing_rings);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.cpus, 1);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
}
END_TEST

/* Other orders may be sent while this one is under way. */
START_TEST(nobody_is_kept_waiting)
{
	struct pp_msg_change_request resize = {
		.which = client_name("a", "x"),
		.what = PP_CHANGE_BUFFER,
		.data_size = 1 << 16,
	};
	struct pp_msg_name x = client_name("a", "x");

	create_on("x", "");
	create_on("y", "");
	fake_wait(&b.engine, true);
	missing_rings_add(&b.missing_rings);
	client_send(&root, PP_OP_CHANGE, &resize);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	b.engine.n_held = 0;
	charges_sweep(&b.lifecycle.charges, UINT64_MAX); /* the resize's old rings */

	fake_wait(&b.engine, true);
	missing_rings_add(&b.missing_rings);
	client_send(&root, PP_OP_DELETE, &x);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
	ck_assert_str_eq(shown("y")->cpus, "0-3");
}
END_TEST

/* Deletes x for another user, whose order is carried out before that about the CPUs. */
static void delete_before_its_turn(void)
{
	struct pp_msg_name x = client_name("a", "x");
	struct event *e = event_of("x");

	fake_wait(&b.engine, true);
	client_send_create(&root, "a", "slow");
	client_send_create(&root, "a", "slower");
	e->ns->owner = TEAM;
	client_send(&team, PP_OP_DELETE, &x);
	broker_settle(&b);
	/* Root's third order follows the team's first. */
	ck_assert_int_eq(e->state, PP_EVENT_DELETING);
	event_rest(e);
	missing_rings_add(&b.missing_rings);
	event_set_state(e, PP_EVENT_DELETING);
	ck_assert_uint_eq(orders_waiting(), 4);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&team), 0);
	broker_settle(&b);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	ck_assert_ptr_null(b.missing_rings.about);
}

START_TEST(gone_before_its_turn)
{
	create_on("x", "");
	create_on("y", "");
	delete_before_its_turn();
	ck_assert_str_eq(shown("y")->cpus, "0-3");
}
END_TEST

/* The rings live on under another name, which wants the CPU as well. */
START_TEST(inherited_before_its_turn)
{
	create_on("x", "");
	ck_assert_int_eq(client_share(&root, "a", "y"), 0);
	delete_before_its_turn();
	ck_assert_str_eq(shown("y")->cpus, "0-3");
}
END_TEST

/* The engine carried out the deletion and died: the order about the CPUs follows directly. */
START_TEST(gone_with_the_engine)
{
	struct pp_msg_name x = client_name("a", "x");

	create_on("x", "");
	event_of("x")->ns->owner = TEAM;
	fake_wait(&b.engine, true);
	client_send_create(&root, "b", "slow");
	broker_settle(&b);
	missing_rings_add(&b.missing_rings);
	client_send(&team, PP_OP_DELETE, &x);
	broker_settle(&b);
	ck_assert_uint_eq(orders_waiting(), 3);
	ck_assert_int_eq(orders_first(b.lifecycle.orders)->next->type, PP_ORDER_DELETE);
	ck_assert_int_eq(orders_first(b.lifecycle.orders)->next->next->type, PP_ORDER_CPUS);
	ck_assert(fake_unmake(&b.engine, 1));
	fake_hang_up(&b.engine);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	ck_assert_uint_eq(orders_waiting(), 0);
	ck_assert_ptr_null(b.missing_rings.about);
}
END_TEST

/* ── what cannot be had ─────────────────────────────────────────────────────────────────── */

START_TEST(over_a_limit)
{
	create_on("x", "");
	create_on("y", "");
	b.config.max_memory = b.quota.sum.used[QUOTA_MEMORY] + 4096;
	broker_limits(&b);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	/* Counters of CPUs that have rings go on: these need no room. */
	ck_assert_uint_eq(b.engine.cpus, 2);
	ck_assert_uint_eq(b.engine.last.spec.cpus.bits[0], 1 << 0 | 1 << 3);
	ck_assert_str_eq(shown("x")->cpus, "0,3");
	ck_assert_str_eq(root.body.event.lacking, "1-2");
	ck_assert_int_eq(root.body.event.lacking_error, EDQUOT);
	missing_rings_retry(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.cpus, 4);
	ck_assert_int_eq(shown("x")->lacking_error, EDQUOT);
	/* Nor do they keep others waiting if they fail. */
	b.engine.mood = FAKE_FAILS;
	b.engine.moods = 1;
	missing_rings_retry(&b.missing_rings);
	broker_settle(&b);
	ck_assert_int_eq(shown("y")->lacking_error, EDQUOT);
	/* When memory is refunded the broker tries again at once. */
	b.config.max_memory = 1ULL << 30;
	broker_limits(&b);
	ck_assert_int_eq(client_delete(&root, "a", "y"), 0);
	broker_settle(&b);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
	ck_assert_str_eq(root.body.event.lacking, "");
	ck_assert_int_eq(root.body.event.lacking_error, 0);
}
END_TEST

START_TEST(the_engine_fails)
{
	create_on("x", "");
	b.engine.mood = FAKE_FAILS;
	b.engine.moods = 1;
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_str_eq(shown("x")->lacking, "1-2");
	ck_assert_int_eq(root.body.event.lacking_error, E2BIG);
	ck_assert_uint_eq(root.body.event.memory, event_of("x")->truth.memory);
	missing_rings_retry(&b.missing_rings);
	broker_settle(&b);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
}
END_TEST

/* A part of the order is done: the answer says what the event is now. */
START_TEST(the_engine_fails_late)
{
	create_on("x", "");
	b.engine.mood = FAKE_FAILS_LATE;
	b.engine.moods = 1;
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.moods, 0);
	ck_assert_int_eq(event_of("x")->missing_error, E2BIG);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 1);
	missing_rings_retry(&b.missing_rings);
	broker_settle(&b);
	ck_assert_int_eq(event_of("x")->missing_error, 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 1);
	/* One that could not finish an earlier change has paused the event. */
	b.engine.events[0].paused = 1;
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_int_eq(shown("x")->state, PP_EVENT_PAUSED);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	ck_assert_uint_eq(b.engine.paused, 1);
}
END_TEST

START_TEST(the_engine_dies)
{
	static const enum fake_mood moods[] = { FAKE_DIES_BEFORE, FAKE_DIES_AFTER };

	create_on("x", "");
	b.engine.mood = moods[_i];
	b.engine.moods = 1;
	missing_rings_add(&b.missing_rings);
	broker_until(&b, b.engine.enumerated == 2 && !orders_first(b.lifecycle.orders));
	broker_settle(&b);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
	ck_assert_uint_eq(b.engine.moods, 0);
	/* (When the engine died twice, the order failed; the broker sends it again.) */
	b.engine.moods = 2;
	missing_rings_add(&b.missing_rings);
	broker_until(&b, b.engine.enumerated == 4 && !orders_first(b.lifecycle.orders) &&
				 event_of("x")->missing == MISSING_NONE);
}
END_TEST

START_TEST(without_an_engine)
{
	create_on("x", "");
	fake_stop(&b.engine);
	broker_settle(&b);
	orders_abandon(b.lifecycle.orders);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(orders_waiting(), 0);
	ck_assert_str_eq(shown("x")->lacking, "1-2");
	fake_start(&b.engine);
	broker_until(&b, b.engine.cpus == 1 && !b.missing_rings.about);
	ck_assert_str_eq(shown("x")->cpus, "0-3");
}
END_TEST

/* CPUs came online without a broker: the engine reports the affected events. */
START_TEST(after_an_enumeration)
{
	create_on("x", "");
	create_on("y", "");
	b.engine.events[1].now = PP_NOW_INCOMPLETE;
	fake_stop(&b.engine);
	broker_settle(&b);
	fake_start(&b.engine);
	broker_until(&b, b.engine.cpus == 1 && !b.missing_rings.about);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.cpus, 1);
	ck_assert_str_eq(shown("x")->cpus, "0,3");
	ck_assert_str_eq(shown("y")->cpus, "0-3");
}
END_TEST

/* ── which are away ─────────────────────────────────────────────────────────────────────── */

START_TEST(since_when)
{
	const struct pp_msg_cpus_request all = { 0 }, later = { .first = 2 };
	struct pp_msg_cpus_request bad = { .reserved = 1 };
	const struct pp_msg_cpus_reply *reply = &team.body.cpus_reply;
	struct timespec now;

	create_on("x", "");
	/* CPUs that the test's machine really has are online. */
	ck_assert_int_eq(pp_parse_cpus("0-2,4-4095", &b.hotplug.online), 0);
	ck_assert_str_eq(shown("x")->away, "3");
	ck_assert_int_eq(client_call(&team, PP_OP_CPUS, &all), 0);
	ck_assert_uint_eq(reply->count, 1);
	ck_assert_uint_eq(reply->cpus[0].cpu, 3);
	ck_assert_uint_eq(reply->cpus[0].since, 0); /* the broker did not see it go offline */
	pp_cpumask_clear(&b.hotplug.online, 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	b.hotplug.away[1].since = now.tv_sec * 1000000000ULL + now.tv_nsec - 5000000000ULL;
	ck_assert_int_eq(client_call(&team, PP_OP_CPUS, &all), 0);
	ck_assert_uint_eq(reply->count, 2);
	ck_assert_uint_eq(reply->cpus[0].cpu, 1);
	clock_gettime(CLOCK_REALTIME, &now);
	ck_assert_uint_le(reply->cpus[0].since, now.tv_sec * 1000000000ULL - 4000000000ULL);
	ck_assert_int_eq(client_call(&team, PP_OP_CPUS, &later), 0);
	ck_assert_uint_eq(reply->count, 1);
	ck_assert_uint_eq(reply->cpus[0].cpu, 3);
	ck_assert_int_eq(client_call(&team, PP_OP_CPUS, &bad), -EINVAL);
}
END_TEST

START_TEST(since_when_in_pages)
{
	struct pp_msg_cpus_request request = { 0 };
	const struct pp_msg_cpus_reply *reply = &team.body.cpus_reply;
	unsigned seen = 0;

	memset(&b.hotplug.online, 0, sizeof(b.hotplug.online));
	for (unsigned cpu = 0; cpu < PP_CPUS_MAX; cpu++)
		b.hotplug.away[cpu].since = 1;
	do {
		ck_assert_int_eq(client_call(&team, PP_OP_CPUS, &request), 0);
		for (unsigned i = 0; i < reply->count; i++)
			ck_assert_uint_eq(reply->cpus[i].cpu, seen++);
		request.first = seen;
	} while (reply->more);
	ck_assert_uint_eq(seen, PP_CPUS_MAX);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arrivals");
	TCase *t = tcase_create("all");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, those_that_want_them);
	tcase_add_test(t, not_those_that_do_not);
	tcase_add_test(t, one_after_the_other);
	tcase_add_test(t, one_that_is_being_created);
	tcase_add_test(t, nobody_is_kept_waiting);
	tcase_add_test(t, gone_before_its_turn);
	tcase_add_test(t, inherited_before_its_turn);
	tcase_add_test(t, gone_with_the_engine);
	tcase_add_test(t, over_a_limit);
	tcase_add_test(t, the_engine_fails);
	tcase_add_test(t, the_engine_fails_late);
	tcase_add_loop_test(t, the_engine_dies, 0, 2);
	tcase_add_test(t, without_an_engine);
	tcase_add_test(t, after_an_enumeration);
	tcase_add_test(t, since_when);
	tcase_add_test(t, since_when_in_pages);
	suite_add_tcase(s, t);
	return run_suite(s);
}
