// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events that are bound to a task or cgroup: in the broker, beside an engine that tells of their ends. */
#include <sys/prctl.h>

#include "proto/task-start.h"
#include "tests/unit/broker-fixture.h"
#include "tests/unit/needs.h"

static struct broker b;
static struct client root, user;

static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	client_begin(&b, &user, 1000);
}

static void teardown(void)
{
	client_end(&user);
	client_end(&root);
	broker_end(&b);
}

static struct pp_msg_create_request request;

static void ask(const char *name, uint32_t flags)
{
	request = (struct pp_msg_create_request){
		.ns = "a",
		.target = { .kind = PP_TARGET_PROCESS, .flags = flags, .pid = 4711, .start = 9 },
		.count = 1,
		.selections[0].event = "cpu-clock",
	};
	snprintf(request.name, sizeof(request.name), "%s", name);
}

static int create(const char *name, uint32_t flags)
{
	ask(name, flags);
	return client_call(&root, PP_OP_CREATE, &request);
}

/* The engine tells it of the newest event. */
static void end_newest(bool says_so)
{
	struct pp_event *e = &b.engine.events[b.engine.n - 1];

	e->now |= PP_NOW_ENDED;
	if (says_so)
		ck_assert(fake_send(&b.engine, PP_ANSWER_ENDED, 0, e, NULL));
}

static void restart_engine(void)
{
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
}

static bool is_shown_as_ended(const char *name)
{
	ck_assert_int_eq(client_show(&root, "a", name), 0);
	return root.body.event.target.flags & PP_TARGET_ENDED;
}

START_TEST(the_engine_gets_it)
{
	ck_assert_int_eq(create("x", PP_TARGET_NO_INHERIT), 0);
	ck_assert_uint_eq(b.engine.last.target.pid, 4711);
	ck_assert_uint_eq(b.engine.last.target.start, 9);
	ck_assert_uint_eq(b.engine.last.spec.flags & PP_EVENT_BOUND, PP_EVENT_BOUND);
	ck_assert_uint_eq(b.engine.last.allowance.perf_events, PP_BOUND_MAX);
	ck_assert_uint_eq(root.body.event.target.kind, PP_TARGET_PROCESS);
	ck_assert_uint_eq(root.body.event.target.flags, PP_TARGET_NO_INHERIT);
	ck_assert_uint_eq(root.body.event.target.pid, 4711);
	/* An event of the whole machine is another, and so is one of the same task. */
	request.target = (struct pp_msg_target){};
	request.flags = PP_EVENT_SHARE;
	snprintf(request.name, sizeof(request.name), "all");
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ask("same", PP_TARGET_NO_INHERIT);
	request.flags = PP_EVENT_SHARE;
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(b.engine.aliased, 0);
	ck_assert_uint_eq(b.engine.created, 3);
}
END_TEST

/* The limits leave room for some perf events beside the rings. */
START_TEST(perf_events_are_charged)
{
	uint64_t used;

	ck_assert_int_eq(create("x", 0), 0);
	used = quota_user(&b.quota, 0)->used[QUOTA_MEMORY];
	b.quota.total.max[QUOTA_MEMORY] = 2 * used + 5 * PP_PERF_EVENT_MEMORY + (1 << 20);
	ck_assert_int_eq(create("y", 0), 0);
	ck_assert_uint_lt(b.engine.last.allowance.perf_events, PP_BOUND_MAX);
	ck_assert_uint_ge(b.engine.last.allowance.perf_events, 5);
	b.engine.events[0].memory += 3 * PP_PERF_EVENT_MEMORY;
	restart_engine();
	ck_assert_uint_eq(quota_user(&b.quota, 0)->used[QUOTA_MEMORY],
			  2 * used + 3 * PP_PERF_EVENT_MEMORY);
}
END_TEST

START_TEST(kept)
{
	ck_assert_int_eq(create("x", 0), 0);
	ck_assert(!is_shown_as_ended("x"));
	end_newest(true);
	broker_until(&b, b.notices[PP_NOTICE_CHANGED] == 1);
	ck_assert(is_shown_as_ended("x"));
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	ck_assert_uint_eq(b.engine.deleted, 0);
	restart_engine();
	ck_assert(is_shown_as_ended("x"));
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
}
END_TEST

START_TEST(deleted)
{
	ck_assert_int_eq(create("x", PP_TARGET_DELETE), 0);
	end_newest(true);
	broker_until(&b, b.notices[PP_NOTICE_DELETED] == 1);
	ck_assert_uint_eq(b.engine.deleted, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
}
END_TEST

/* While nobody could tell. */
START_TEST(deleted_when_it_is_found)
{
	ck_assert_int_eq(create("x", PP_TARGET_DELETE), 0);
	end_newest(false);
	restart_engine();
	broker_until(&b, b.notices[PP_NOTICE_DELETED] == 1);
	ck_assert_uint_eq(b.engine.n, 0);
}
END_TEST

/* Another order goes first. One that fails is not repeated before there is another engine. */
START_TEST(deleted_after_what_is_under_way)
{
	struct pp_msg_pause_request pause = { .which = client_name("a", "x"), .pause = 1 };

	ck_assert_int_eq(create("x", PP_TARGET_DELETE), 0);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_PAUSE, &pause);
	broker_until(&b,
		     registry_by_name(&b.lifecycle.registry, "a", "x")->state == PP_EVENT_CHANGING);
	end_newest(true);
	broker_until(&b, b.notices[PP_NOTICE_CHANGED] == 1);
	ck_assert_uint_eq(b.engine.deleted, 0);
	b.engine.mood = FAKE_FAILS;
	b.engine.moods = 1;
	b.engine.moody = PP_ORDER_DELETE;
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_until(&b, b.engine.moods == 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], 0);
	restart_engine();
	broker_until(&b, b.notices[PP_NOTICE_DELETED] == 1);
}
END_TEST

/* An engine that dies between making it and saying so. */
START_TEST(found_before_it_was_answered)
{
	b.engine.mood = FAKE_DIES_AFTER;
	b.engine.moods = 1;
	ck_assert_int_eq(create("x", PP_TARGET_DELETE), 0);
	ck_assert_uint_eq(root.body.event.target.pid, 4711);
	ck_assert_uint_eq(b.engine.created, 1);
	end_newest(true);
	broker_until(&b, b.notices[PP_NOTICE_DELETED] == 1);
}
END_TEST

/* Ends of events that are not bound, or not there, concern nobody; a target that cannot be one breaks the link. */
START_TEST(lies)
{
	struct pp_event none = { .id = 999 };

	ck_assert_int_eq(client_create(&root, "a", "all"), 0);
	end_newest(true);
	ck_assert(fake_send(&b.engine, PP_ANSWER_ENDED, 0, &none, NULL));
	ck_assert(!is_shown_as_ended("all"));
	b.engine.events[0].now = 0;
	ck_assert_int_eq(create("x", 0), 0);
	b.engine.targets[b.engine.last_id].pid = 0;
	fake_hang_up(&b.engine);
	broker_until(&b, b.engine.enumerated >= 3);
	b.engine.targets[b.engine.last_id].pid = 4711;
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
}
END_TEST

START_TEST(triggers_and_adoptions_have_none)
{
	struct pp_msg_trigger_request trigger = { .hold_off = PP_HOLD_OFF_MIN, .targets = "x" };

	ask("x", 0);
	trigger.event = request;
	ck_assert_int_eq(client_call(&root, PP_OP_TRIGGER, &trigger), -EINVAL);
	ck_assert_int_eq(client_call(&root, PP_OP_ADOPT, &request), -EINVAL);
	ck_assert_uint_eq(b.engine.created, 0);
}
END_TEST

/* Whoever may create an event of the whole machine may create this, and nobody else. */
START_TEST(rights)
{
	ask("x", 0);
	ck_assert_int_eq(client_call(&user, PP_OP_CREATE, &request), -EACCES);
	ck_assert_int_eq(create("x", 0), 0);
}
END_TEST

START_TEST(start_times)
{
	static const char *const names[] = { "a) Z 1 (b) ", "a\nb) Z 1 (\n" };
	uint64_t mine, again;
	char state;

	ck_assert_int_eq(pp_task_start((uint32_t)getpid(), &mine, &state), 0);
	ck_assert_int_eq(pp_task_start((uint32_t)getpid(), &again, NULL), 0);
	ck_assert_uint_eq(mine, again);
	ck_assert_int_eq(state, 'R');
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ck_assert_int_eq(prctl(PR_SET_NAME, names[i], 0, 0, 0), 0);
		ck_assert_int_eq(pp_task_start((uint32_t)getpid(), &again, &state), 0);
		ck_assert_uint_eq(mine, again);
		ck_assert_int_eq(state, 'R');
	}
	ck_assert_int_eq(pp_task_start(4194303, &again, NULL), -ESRCH);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("target");
	TCase *t = tcase_create("bound");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_engine_gets_it);
	tcase_add_test(t, perf_events_are_charged);
	tcase_add_test(t, kept);
	tcase_add_test(t, deleted);
	tcase_add_test(t, deleted_when_it_is_found);
	tcase_add_test(t, deleted_after_what_is_under_way);
	tcase_add_test(t, found_before_it_was_answered);
	tcase_add_test(t, lies);
	tcase_add_test(t, triggers_and_adoptions_have_none);
	tcase_add_test(t, rights);
	tcase_add_test(t, start_times);
	suite_add_tcase(s, t);
	return run_suite(s);
}
