// SPDX-License-Identifier: LGPL-2.1-or-later
/* Triggers in the broker: which events are armed and turned, in which order, whatever dies. */
#include "daemon/broker/triggers/fired.h"
#include "proto/clock.h"
#include "tests/unit/broker-fixture.h"
#include "tests/unit/needs.h"

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

/* The orders about triggers since the last time. */
static void expect(const char *orders)
{
	broker_settle(&b);
	ck_assert_str_eq(b.engine.did, orders);
	b.engine.did[0] = 0;
}

static void be(enum fake_mood mood, uint32_t type, unsigned times)
{
	b.engine.mood = mood;
	b.engine.moody = type;
	b.engine.moods = times;
}

static struct event *event_of(uint64_t id)
{
	struct event *e = registry_by_id(&b.lifecycle.registry, id);

	ck_assert_ptr_nonnull(e);
	return e;
}

/* Whether it is armed or turned; its second set is in memory(). */
static uint32_t now_of(uint64_t id)
{
	return event_of(id)->truth.now & ~(PP_NOW_SWAP | PP_NOW_STOPS);
}

/* Events 1 and 2, x and y, and their trigger 3, t. */
static void begin(void)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x,y"), 0);
	expect("arm1 arm2 aim3:1,2");
}

/* In the kernel, and the broker reads of it. */
static void fire(uint64_t trigger)
{
	fake_fire(&b.engine, trigger, false);
	triggers_fired(&b.triggers, trigger, 0);
}

static uint64_t memory(void)
{
	return b.quota.sum.used[QUOTA_MEMORY];
}

/* What the engine has is what is charged. */
static void check_memory(void)
{
	uint64_t has = 0;

	for (size_t i = 0; i < b.engine.n; i++)
		has += b.engine.events[i].memory;
	for (size_t i = 0; i < b.engine.n_held; i++)
		has += b.engine.held[i].bytes;
	for (size_t i = 0; i < b.engine.n_tapes; i++)
		has += b.engine.tapes[i].orphans.bytes;
	ck_assert_uint_eq(memory(), has);
}

/* The client has saved the oldest tape, and the engine has freed its rings. */
static void release(void)
{
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, b.engine.tapes[0].orphans.id), 0);
	fake_release(&b.engine, 0);
	broker_settle(&b);
}

/* ── who is armed ───────────────────────────────────────────────────────────────────────── */

START_TEST(targets_are_armed_then_aimed_at)
{
	uint64_t before;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	before = memory();
	b.engine.holds_after = 2; /* the trigger's creation, and one more */
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x,y"), 0);
	ck_assert_uint_eq(root.body.event.flags & PP_EVENT_TRIGGER, PP_EVENT_TRIGGER);
	/* One at a time: others get their turn in between. */
	expect("arm1");
	client_send_create(&root, "a", "z");
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	expect("arm2 aim3:1,2");
	ck_assert_uint_gt(memory(), 2 * before);
	check_memory();
	/* Once is enough. */
	triggers_continue(&b.triggers);
	triggers_retry(&b.triggers);
	expect("");
}
END_TEST

START_TEST(later_events_are_armed_too)
{
	begin();
	ck_assert_int_eq(client_create(&root, "a", "z"), 0);
	expect("");
	ck_assert_int_eq(client_trigger(&root, "a", "u", "z*,new"), 0);
	expect("arm4 aim5:4");
	ck_assert_int_eq(client_create(&root, "a", "new"), 0);
	expect("arm6 aim5:4,6");
	ck_assert_int_eq(client_create(&root, "a", "zz"), 0);
	expect("arm7 aim5:4,6,7");
	ck_assert_int_eq(client_create(&root, "a", "other"), 0);
	expect("");
}
END_TEST

/* Which of them are targets: a/x, a/xy-1, a/x_2, a/q, a/Xx, and b/x. */
START_TEST(globs)
{
	static const struct {
		const char *targets, *orders;
	} table[] = {
		{ "x", "arm1 aim7:1" },
		{ "*", "arm1 arm2 arm3 arm4 arm5 aim7:1,2,3,4,5" },
		{ "x*", "arm1 arm2 arm3 aim7:1,2,3" },
		{ "x?*", "arm2 arm3 aim7:2,3" },
		{ "?", "arm1 arm4 aim7:1,4" },
		{ "[xX]*", "arm1 arm2 arm3 arm5 aim7:1,2,3,5" },
		{ "*[0-9]", "arm2 arm3 aim7:2,3" },
		{ "*-1,q", "arm2 arm4 aim7:2,4" },
		{ "q,q,q", "arm4 aim7:4" },
		{ "missing", "aim7" },
		{ "x[", "aim7" }, /* a literal bracket */
		{ "t", "aim7" },  /* no trigger is frozen */
	};

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "xy-1"), 0);
	ck_assert_int_eq(client_create(&root, "a", "x_2"), 0);
	ck_assert_int_eq(client_create(&root, "a", "q"), 0);
	ck_assert_int_eq(client_create(&root, "a", "Xx"), 0);
	ck_assert_int_eq(client_create(&root, "b", "x"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", table[_i].targets), 0);
	expect(table[_i].orders);
	ck_assert_uint_eq(now_of(6), 0);
}
END_TEST

START_TEST(second_names_are_no_targets)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_share(&root, "a", "x2"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "*"), 0);
	expect("arm1 aim3:1");
	/* Nobody shares a trigger's rings: their programs fire. */
	ck_assert_int_eq(client_delete(&root, "a", "x2"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_share(&root, "a", "x2"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
}
END_TEST

/* What waits for an earlier tape goes on waiting when the event gets another name. */
START_TEST(second_names_are_not_turned)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1 aim2:1");
	fire(2);
	expect("turn1");
	fire(2);
	expect("");
	ck_assert(now_of(1) & PP_NOW_TURNED);
	ck_assert_int_eq(client_share(&root, "a", "x2"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	expect("");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	release();
	expect("give3 turn1");
}
END_TEST

/* The oldest name of a target goes, and the next one: the rings, and their tape, are the same. */
START_TEST(another_name_has_the_rings)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_share(&root, "a", "x2"), 0);
	ck_assert_int_eq(client_share(&root, "a", "x3"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "*"), 0);
	expect("arm1 aim4:1");
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	expect("");
	fire(4);
	expect("turn2");
	ck_assert_uint_eq(b.ready, 1);
	release();
	expect("give5");
	/* Aimed anew between the two. */
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	expect("arm6 aim4:2,6");
	ck_assert_int_eq(client_delete(&root, "a", "x2"), 0);
	expect("");
	fire(4);
	expect("turn6 turn3");
	ck_assert_uint_eq(b.ready, 3);
	check_memory();
}
END_TEST

START_TEST(removing_the_trigger_disarms)
{
	uint64_t before;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	before = memory();
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x,y"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "u", "y"), 0);
	expect("arm1 arm2 aim3:1,2 aim4:2");
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	expect("off1"); /* y is another's target still */
	ck_assert_int_eq(client_delete(&root, "a", "u"), 0);
	expect("off2");
	ck_assert_uint_eq(memory(), before);
}
END_TEST

/* A paused event records nothing worth freezing; a change takes the second set of rings away. */
START_TEST(changes_of_targets)
{
	begin();
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	expect("");
	ck_assert_uint_eq(now_of(1), 0);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	expect("arm1 aim3:1,2");
	check_memory();
	ck_assert_int_eq(client_delete(&root, "a", "y"), 0);
	expect("");
	check_memory();
}
END_TEST

START_TEST(many_targets)
{
	unsigned turns = 0;
	char name[16];

	ck_assert_int_eq(client_trigger(&root, "a", "t", "e*"), 0);
	for (unsigned i = 0; i < PP_TARGETS_MAX + 3; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		ck_assert_int_eq(client_create(&root, "a", name), 0);
		broker_settle(&b);
		b.engine.did[0] = 0;
	}
	ck_assert_uint_eq(fake_trigger(&b.engine, 1)->n_targets, PP_TARGETS_MAX);
	/* No order for those it does not turn. */
	fire(1);
	broker_settle(&b);
	for (const char *p = b.engine.did; (p = strstr(p, "turn")); p++)
		turns++;
	ck_assert_uint_eq(turns, PP_TARGETS_MAX);
}
END_TEST

/* ── firings ────────────────────────────────────────────────────────────────────────────── */

START_TEST(a_firing)
{
	begin();
	fire(3);
	b.engine.holds_after = 1;
	expect("turn1");
	/* The tapes of one firing are saved together. */
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	ck_assert_uint_eq(b.ready, 0);
	fake_wait(&b.engine, false);
	expect("turn2");
	ck_assert_uint_eq(b.ready, 2);
	ck_assert_uint_eq(b.tapes_at_ready, 2);
	check_memory();
	release();
	release();
	ck_assert_uint_eq(b.lifecycle.tapes.n, 0);
	expect("give4 give5");
	check_memory();
}
END_TEST

/* Whoever fired: a trigger that is gone, one of another namespace, an event that is none. */
START_TEST(firings_of_strangers)
{
	begin();
	ck_assert_int_eq(client_trigger(&root, "b", "t", "*"), 0);
	expect("aim4");
	triggers_fired(&b.triggers, 4, 0);
	triggers_fired(&b.triggers, 1, 0);
	/* A deleted trigger fires, and turns nothing, until it is detached. */
	triggers_fired(&b.triggers, 99, 0);
	expect("");
	/* Said, and not true: nothing is lost by looking. */
	triggers_fired(&b.triggers, 3, 0);
	expect("turn1 turn2");
	ck_assert_uint_eq(b.ready, 0);
	check_memory();
}
END_TEST

START_TEST(by_hand)
{
	begin();
	ck_assert_int_eq(client_fire(&root, "a", "t"), 0);
	expect("fire3 turn1 turn2");
	ck_assert_uint_eq(b.ready, 2);
	b.engine.error = EAGAIN;
	be(FAKE_FAILS, PP_ORDER_FIRE, 1);
	ck_assert_int_eq(client_fire(&root, "a", "t"), -EAGAIN);
	ck_assert_str_eq(root.body.error.message, "The fake failed.");
	expect("");
}
END_TEST

#define MS 1000000ULL

/* Trigger t lets x and y go on for so long. */
static void begin_windows(uint64_t after)
{
	struct pp_msg_trigger_request request = client_trigger_request("a", "t", "x,y");

	request.after = after;
	request.after_records = 200;
	request.hold_off = 60000 * MS;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_TRIGGER, &request), 0);
	expect("arm1w arm2w aim3:1,2");
}

static uint64_t monotonic(void)
{
	return pp_clock_ns(CLOCK_MONOTONIC);
}

/* A record ends the window of x; the time that of y. What they had is told together. */
START_TEST(windows)
{
	begin_windows(59000 * MS);
	fake_fire(&b.engine, 3, false);
	triggers_fired(&b.triggers, 3, monotonic());
	fake_close(&b.engine, 1);
	triggers_note_closed(&b.triggers, 1);
	triggers_note_closed(&b.triggers, 99);
	triggers_continue(&b.triggers);
	expect("turn1");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	ck_assert_uint_eq(b.ready, 0);
	fake_close(&b.engine, 2);
	event_of(2)->closes = monotonic() + MS;
	triggers_continue(&b.triggers);
	broker_until(&b, b.ready);
	expect("turn2");
	ck_assert_uint_eq(b.ready, 2);
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED | PP_NOW_WINDOWS);
	ck_assert_uint_eq(now_of(2), PP_NOW_ARMED | PP_NOW_WINDOWS);
	check_memory();
}
END_TEST

/* Nothing is ordered before it is over; and if the engine does not think so, later again. */
START_TEST(windows_that_are_open)
{
	begin_windows(59000 * MS);
	fake_fire(&b.engine, 3, false);
	triggers_fired(&b.triggers, 3, monotonic());
	expect("");
	ck_assert_uint_eq(now_of(1), PP_NOW_CLOSING | PP_NOW_WINDOWS);
	/* Another firing meanwhile changes nothing. */
	triggers_fired(&b.triggers, 3, monotonic() - 59000 * MS);
	expect("");
	triggers_note_closed(&b.triggers, 1);
	triggers_continue(&b.triggers);
	expect("turn1");
	ck_assert_uint_eq(now_of(1), PP_NOW_CLOSING | PP_NOW_WINDOWS);
	ck_assert_uint_eq(b.ready, 0);
	fake_close(&b.engine, 1);
	fake_close(&b.engine, 2);
	triggers_note_closed(&b.triggers, 1);
	triggers_note_closed(&b.triggers, 2);
	triggers_continue(&b.triggers);
	expect("turn2 turn1");
	ck_assert_uint_eq(b.ready, 2);
}
END_TEST

/* Events that are armed get windows with the first trigger that wants them. */
START_TEST(windows_of_armed_events)
{
	struct pp_msg_trigger_request request = client_trigger_request("a", "w", "x");

	begin();
	request.after = PP_HOLD_OFF_MIN;
	ck_assert_int_eq(client_call(&root, PP_OP_TRIGGER, &request), 0);
	expect("arm1w aim3:1,2 aim4:1");
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED | PP_NOW_WINDOWS);
	/* Of a trigger that lets nothing go on it turns at once. */
	fire(3);
	expect("turn1 turn2");
	check_memory();
}
END_TEST

/* The engine returns, or another broker: the windows are as they are, and nobody knows until when. */
START_TEST(windows_after_a_death)
{
	begin_windows(59000 * MS);
	fake_fire(&b.engine, 3, false);
	fake_hang_up(&b.engine);
	broker_until(&b, strstr(b.engine.did, "aim3"));
	expect("turn1 turn2 aim3:1,2");
	ck_assert_uint_eq(b.ready, 0);
	ck_assert_uint_eq(now_of(1), PP_NOW_CLOSING | PP_NOW_WINDOWS);
	fake_close(&b.engine, 1);
	fake_close(&b.engine, 2);
	broker_until(&b, b.ready == 2);
}
END_TEST

/* What disarms an event makes a tape of what a trigger has turned; not a second one. */
START_TEST(no_second_tape_by_a_pause)
{
	begin();
	fire(3);
	expect("turn1 turn2");
	fire(3);
	expect("");
	ck_assert_int_eq(client_pause(&root, "a", "x", true), -EBUSY);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 4), 0);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 5), 0);
	expect("give4 turn1 give5 turn2");
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 6), 0);
	expect("give6");
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
}
END_TEST

/* The event was turned a second time before anybody has saved the first tape. */
START_TEST(a_second_firing_waits)
{
	begin();
	fire(3);
	expect("turn1 turn2");
	fire(3);
	expect("");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 2);
	ck_assert_uint_eq(now_of(1), PP_NOW_TURNED);
	triggers_retry(&b.triggers);
	expect("");
	release();
	expect("give4 turn1");
	release();
	expect("give5 turn2");
	ck_assert_uint_eq(b.ready, 4);
	check_memory();
}
END_TEST

START_TEST(an_event_of_two_triggers)
{
	begin();
	ck_assert_int_eq(client_trigger(&root, "a", "u", "y"), 0);
	expect("aim4:2");
	fire(4);
	expect("turn2");
	ck_assert_uint_eq(b.lifecycle.tapes.all[0]->by.trigger, 4);
	fire(3);
	expect("turn1");
	ck_assert_uint_eq(b.ready, 2);
}
END_TEST

/* A user's order turns the event first, before the broker has read of the firing. */
START_TEST(a_pause_of_a_turned_event)
{
	begin();
	fake_fire(&b.engine, 3, false);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	triggers_fired(&b.triggers, 3, 0);
	expect("turn2");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 2);
	ck_assert_uint_eq(b.ready, 2);
	check_memory();
}
END_TEST

/* ── what a firing does ─────────────────────────────────────────────────────────────────── */

static int trigger(const char *name, const char *targets, enum pp_action action)
{
	struct pp_msg_trigger_request request = client_trigger_request("a", name, targets);

	request.action = action;
	return client_call(&root, PP_OP_TRIGGER, &request);
}

static void expect_paused(uint64_t id)
{
	ck_assert_int_eq(event_of(id)->state, PP_EVENT_PAUSED);
	ck_assert_int_eq(client_by_id(&root, PP_OP_SHOW, id), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
	ck_assert_uint_ne(root.body.event.flags & PP_EVENT_STOPPED, 0);
}

/* It takes no second set, makes no tape, and lasts until somebody resumes it. */
START_TEST(pauses)
{
	uint64_t before;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	before = memory();
	ck_assert_int_eq(trigger("t", "x,y", PP_ACTION_PAUSE), 0);
	expect("arm1-s arm2-s aim3:1,2");
	ck_assert_uint_lt(memory() - before, before / 2 + 1);
	fire(3);
	expect("turn1 turn2");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 0);
	ck_assert_uint_eq(b.paused_by, 2);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 2);
	expect_paused(1);
	expect_paused(2);
	check_memory();
	fire(3);
	expect("");
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	expect_paused(1);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	ck_assert_int_eq(event_of(1)->state, PP_EVENT_RUNNING);
	expect("arm1-s aim3:1");
	fire(3);
	expect("turn1");
	ck_assert_uint_eq(b.paused_by, 3);
	check_memory();
}
END_TEST

/* One that is to be frozen as well gets a second set, and is paused although it has a tape. */
START_TEST(pauses_what_has_a_tape)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("t", "x", PP_ACTION_PAUSE), 0);
	expect("arm1-s aim2:1");
	ck_assert_int_eq(trigger("u", "x", PP_ACTION_SNAPSHOT), 0);
	expect("off1 arm1s aim2:1 aim3:1");
	fire(3);
	expect("turn1");
	fire(3);
	expect("");
	ck_assert_uint_eq(event_of(1)->truth.now & PP_NOW_TURNED, PP_NOW_TURNED);
	release();
	expect("give4 turn1");
	fire(2);
	expect("turn1!");
	expect_paused(1);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	release();
	expect("give5");
	check_memory();
}
END_TEST

/* The note of a pause comes late: what another trigger turned meanwhile waits for its tape. */
START_TEST(no_second_tape_by_a_late_pause)
{
	begin();
	ck_assert_int_eq(trigger("p", "x", PP_ACTION_PAUSE), 0);
	expect("arm1s aim3:1,2 aim4:1");
	fire(3);
	expect("turn1 turn2");
	fake_fire(&b.engine, 3, false);
	fake_fire(&b.engine, 4, false);
	triggers_fired(&b.triggers, 4, 0);
	expect("turn1!");
	ck_assert_uint_eq(b.engine.n_tapes, 2);
	ck_assert_int_eq(event_of(1)->state, PP_EVENT_RUNNING);
	release();
	expect("give5 turn1");
}
END_TEST

/* A user's order finds it stopped, before the broker has read of the firing. */
START_TEST(orders_about_what_was_stopped)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("t", "x", PP_ACTION_PAUSE), 0);
	expect("arm1-s aim2:1");
	fake_fire(&b.engine, 2, false);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(b.paused_by, 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	expect_paused(1);
	triggers_fired(&b.triggers, 2, 0);
	expect("");
}
END_TEST

static const enum fake_mood deaths[] = { FAKE_DIES_BEFORE, FAKE_DIES_AFTER, FAKE_LIES_SIZE,
					 FAKE_LIES_ABI };

START_TEST(deaths_while_pausing)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("t", "x", PP_ACTION_PAUSE), 0);
	expect("arm1-s aim2:1");
	be(deaths[_i], PP_ORDER_TURN, 1);
	fire(2);
	broker_until(&b, orders_is_up(b.lifecycle.orders) && b.paused_by);
	broker_settle(&b);
	expect_paused(1);
	ck_assert_uint_eq(b.paused_by, 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 0);
	check_memory();
}
END_TEST

/* A tape waits under its own name, with the action of the trigger, which may have gone. */
START_TEST(freezes)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("t", "x", PP_ACTION_FREEZE), 0);
	expect("arm1 aim2:1");
	fire(2);
	expect("turn1");
	ck_assert(b.lifecycle.tapes.all[0]->event.is_kept);
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_TAPES, &(struct pp_msg_list_request){}), 0);
	ck_assert_uint_eq(root.body.tapes_reply.count, 1);
	ck_assert_uint_eq(root.body.tapes_reply.tapes[0].action, PP_ACTION_FREEZE);
	ck_assert_str_eq(root.body.tapes_reply.tapes[0].trigger_name, "");
}
END_TEST

/* What somebody may keep for ever holds up nobody else's snapshots. */
START_TEST(what_is_kept_holds_up_nothing)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(trigger("keep", "x", PP_ACTION_FREEZE), 0);
	ck_assert_int_eq(trigger("save", "y", PP_ACTION_SNAPSHOT), 0);
	broker_settle(&b);
	fire(4); /* so that its next firing is later than the first one of the other */
	broker_settle(&b);
	release();
	fire(3);
	broker_settle(&b);
	ck_assert_uint_eq(b.ready, 2);
	fire(3); /* x is turned again, and waits */
	broker_settle(&b);
	ck_assert(now_of(1) & PP_NOW_TURNED);
	fire(4);
	broker_settle(&b);
	ck_assert_uint_eq(b.ready, 3);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 2);
}
END_TEST

START_TEST(notifies)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("t", "", PP_ACTION_NOTIFY), 0);
	expect(""); /* it has nobody to aim at */
	fire(2);
	expect("");
	ck_assert_int_eq(client_fire(&root, "a", "t"), 0);
	expect("fire2");
}
END_TEST

/* At most one message a second, and none is forgotten. */
START_TEST(notifies_often)
{
	struct pp_fired fired = { .trigger = 1, .action = PP_ACTION_NOTIFY };
	const uint64_t begin = 3600 * FIRED_TELL_EVERY;
	unsigned told = 0;
	struct event *e;

	ck_assert_int_eq(trigger("t", "", PP_ACTION_NOTIFY), 0);
	e = event_of(1);
	for (unsigned i = 0; i <= 300; i++) {
		fired.time = begin + i * FIRED_TELL_EVERY / 100;
		fired.number++;
		told += fired_tell(e, &fired);
	}
	ck_assert_uint_eq(told, 4); /* the last one, too */
	ck_assert(!fired_tell_rest(e, 0));
	/* One by an order is told late. */
	fired.time -= FIRED_TELL_EVERY / 100;
	ck_assert(!fired_tell(e, &fired));
	fired.time += FIRED_TELL_EVERY / 50;
	ck_assert(!fired_tell(e, &fired));
	ck_assert_uint_eq(e->n_to_tell, 2);
	ck_assert(fired_tell_rest(e, 0));
	ck_assert(!fired_tell_rest(e, 0));
	ck_assert_uint_eq(e->told, fired.time);
	ck_assert(fired_tell_rest(e, 5));
	fired.time += FIRED_TELL_EVERY;
	ck_assert(fired_tell(e, &fired));
}
END_TEST

START_TEST(actions_that_are_refused)
{
	struct pp_msg_trigger_request request = client_trigger_request("a", "t", "x");

	ck_assert_int_eq(trigger("t", "x", PP_ACTION_NOTIFY), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "name no targets"));
	for (unsigned i = 0; i < PP_ACTION_NOTIFY; i++)
		ck_assert_int_eq(trigger("t", "", i), -EINVAL);
	ck_assert_int_eq(trigger("t", "x", PP_ACTIONS), -EINVAL);
	request.action = PP_ACTION_PAUSE;
	request.after = 1;
	ck_assert_int_eq(client_call(&root, PP_OP_TRIGGER, &request), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "stops them at once"));
	request.action = PP_ACTION_NOTIFY;
	*request.targets = 0;
	ck_assert_int_eq(client_call(&root, PP_OP_TRIGGER, &request), -EINVAL);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "no targets that could go on"));
	expect("");
}
END_TEST

/* ── memory ─────────────────────────────────────────────────────────────────────────────── */

/* No more than there is now. */
static void allow_no_more(void)
{
	b.config.max_memory = b.config.max_memory_per_namespace = memory();
	broker_limits(&b);
}

START_TEST(no_memory_to_arm)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "b", "gives"), 0);
	ck_assert_int_eq(client_trigger(&root, "b", "t", "-"), -EINVAL);
	b.config.max_memory = memory() + memory() / 2 + memory() / 4;
	broker_limits(&b);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1- aim3:1");
	check_memory();
	/* The event itself is what fired, until that is released; a second firing finds it frozen. */
	fire(3);
	expect("turn1-");
	ck_assert_uint_eq(b.ready, 1);
	ck_assert_ptr_nonnull(tapes_find(&b.lifecycle.tapes, 1));
	fire(3);
	expect("");
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 1), 0);
	expect("give1 turn1-");
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED);
	fire(3);
	expect("turn1-");
	check_memory();
	/* It goes with its event. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.lifecycle.tapes.n, 0);
}
END_TEST

/* A second set that an armed event does not have is asked for before it is disarmed, and goes when nobody
 * needs it. */
START_TEST(a_second_set_comes_and_goes)
{
	uint64_t before;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(trigger("p", "x", PP_ACTION_PAUSE), 0);
	expect("arm1-s aim2:1");
	b.config.max_memory = b.config.max_memory_per_namespace =
		memory() + memory() / 2 + memory() / 4;
	broker_limits(&b);
	ck_assert_int_eq(trigger("t", "x", PP_ACTION_SNAPSHOT), 0);
	expect("aim3:1");
	ck_assert(event_of(1)->no_swap);
	triggers_retry(&b.triggers);
	expect("");
	/* Where there is room by the next time it gets one. */
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	before = memory();
	b.config.max_memory = b.config.max_memory_per_namespace = 4 * before;
	broker_limits(&b);
	ck_assert_int_eq(trigger("u", "x", PP_ACTION_FREEZE), 0);
	expect("off1 arm1s aim2:1 aim4:1");
	ck_assert_uint_eq(event_of(1)->truth.now, PP_NOW_ARMED | PP_NOW_STOPS | PP_NOW_SWAP);
	ck_assert_int_eq(client_delete(&root, "a", "u"), 0);
	expect("off1 arm1-s aim2:1");
	ck_assert_uint_eq(memory(), before);
	check_memory();
}
END_TEST

/* What a trigger that is gone could not have is no word about the next one. */
START_TEST(a_second_set_that_nobody_needs)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	b.config.max_memory = 2 * memory() + memory() / 2;
	broker_limits(&b);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1- aim2:1");
	ck_assert(event_of(1)->no_swap);
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	expect("off1");
	ck_assert_int_eq(trigger("p", "x", PP_ACTION_PAUSE), 0);
	expect("arm1-s aim3:1");
	ck_assert(!event_of(1)->no_swap);
}
END_TEST

/* Who has the right to another name of a frozen event may not release what belongs to the first. */
START_TEST(not_by_another_name)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_share(&root, "b", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	b.config.max_memory = 2 * memory() + memory() / 2;
	broker_limits(&b);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1- aim3:1");
	fire(3);
	expect("turn1-");
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 2), -ENOENT);
	expect("");
	ck_assert_ptr_nonnull(tapes_find(&b.lifecycle.tapes, 1));
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 1), 0);
	expect("give1");
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED);
	ck_assert_uint_eq(event_of(2)->truth.now, event_of(1)->truth.now);
	ck_assert_uint_eq(event_of(2)->truth.now & PP_NOW_TURNED, 0);
}
END_TEST

/* The engine ends, and what was frozen is released before it is a tape again. */
START_TEST(a_release_before_the_turn)
{
	struct pp_msg_name which = { .id = 1 };

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	b.config.max_memory = 2 * memory() + memory() / 2;
	broker_limits(&b);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1- aim2:1");
	fake_wait(&b.engine, true);
	fire(2);
	client_send(&root, PP_OP_RELEASE, &which);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	expect("turn1- give1");
	ck_assert_uint_eq(b.lifecycle.tapes.n, 0);
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED);
}
END_TEST

/* What fired is a tape all the same. */
START_TEST(no_memory_to_turn)
{
	begin();
	allow_no_more();
	fire(3);
	expect("turn1- turn2-");
	ck_assert_uint_eq(b.ready, 2);
	check_memory();
	ck_assert_uint_eq(now_of(1), 0);
	triggers_retry(&b.triggers);
	expect("");
	/* The answer to RELEASE comes first, the memory later. */
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 4), 0);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 5), 0);
	expect("give4 give5");
	b.config.max_memory = b.config.max_memory_per_namespace = 1ULL << 30;
	broker_limits(&b);
	fake_release(&b.engine, 0);
	expect("arm1 arm2 aim3:1,2");
	check_memory();
}
END_TEST

/* ── deaths ─────────────────────────────────────────────────────────────────────────────── */

static bool is_ready(void)
{
	const struct fake_trigger *t = fake_trigger(&b.engine, 3);

	return t && t->n_targets == 2 && !b.triggers.about && orders_is_up(b.lifecycle.orders);
}

/* However the engine dies, the end is the same. */
START_TEST(deaths_while_arming)
{
	static const uint32_t types[] = { PP_ORDER_ARM, PP_ORDER_AIM };
	enum fake_mood mood = deaths[(size_t)_i % ARRAY_SIZE(deaths)];
	uint32_t type = types[(size_t)_i / ARRAY_SIZE(deaths) % 2];
	unsigned times = (unsigned)_i / ARRAY_SIZE(deaths) / 2 ? 5 : 1;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	be(mood, type, times);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x,y"), 0);
	broker_until(&b, is_ready());
	broker_settle(&b);
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED);
	ck_assert_uint_eq(now_of(2), PP_NOW_ARMED);
	check_memory();
	fire(3);
	broker_until(&b, b.ready == 2);
	check_memory();
}
END_TEST

START_TEST(deaths_while_turning)
{
	enum fake_mood mood = deaths[(size_t)_i % ARRAY_SIZE(deaths)];
	unsigned times = (unsigned)_i / ARRAY_SIZE(deaths) ? 3 : 1;

	begin();
	be(mood, PP_ORDER_TURN, times);
	fire(3);
	broker_until(&b, b.ready == 2 && is_ready());
	ck_assert_uint_eq(b.engine.n_tapes, 2);
	ck_assert_uint_eq(b.tapes_at_ready, 2);
	ck_assert_uint_eq(now_of(1), PP_NOW_ARMED);
	ck_assert_uint_eq(now_of(2), PP_NOW_ARMED);
	check_memory();
}
END_TEST

START_TEST(deaths_while_disarming)
{
	begin();
	be(deaths[_i], PP_ORDER_DISARM, 1);
	ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	broker_until(&b, b.engine.moods == 0 && orders_is_up(b.lifecycle.orders) &&
				 !(b.engine.events[0].now | b.engine.events[1].now));
	broker_settle(&b);
	check_memory();
}
END_TEST

/* It may or may not have fired, and it must not fire twice. */
START_TEST(deaths_while_firing)
{
	bool fired = deaths[_i] != FAKE_DIES_BEFORE;

	begin();
	be(deaths[_i], PP_ORDER_FIRE, 1);
	ck_assert_int_eq(client_fire(&root, "a", "t"), -EAGAIN);
	broker_until(&b, is_ready());
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.n_tapes, fired ? 2 : 0);
	ck_assert_uint_eq(b.ready, fired ? 2 : 0);
	ck_assert_uint_eq(fake_trigger(&b.engine, 3)->fired.number, fired);
}
END_TEST

START_TEST(deaths_while_releasing)
{
	begin();
	fire(3);
	broker_settle(&b);
	be(deaths[_i], PP_ORDER_RELEASE, 1);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 4), 0);
	ck_assert_ptr_null(tapes_find(&b.lifecycle.tapes, 4));
	ck_assert_ptr_nonnull(tapes_find(&b.lifecycle.tapes, 5));
	fake_release(&b.engine, 0);
	broker_settle(&b);
	check_memory();
}
END_TEST

/* Tapes that went while there was no engine. */
START_TEST(lost_tapes)
{
	begin();
	fire(3);
	broker_settle(&b);
	fake_hang_up(&b.engine);
	ck_assert(fake_drop_tape(&b.engine, 4));
	b.engine.n_held = 0;
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.lifecycle.tapes.n, 1);
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 4), -ENOENT);
	/* It is told once. */
	ck_assert_uint_eq(b.ready, 2);
	check_memory();
}
END_TEST

/* ── refusals ───────────────────────────────────────────────────────────────────────────── */

/* Whatever failed, the event is not armed any more: it is armed again, and a firing finds it. */
START_TEST(a_change_that_fails_late)
{
	const struct pp_event *x = &b.engine.events[0];

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	broker_settle(&b);
	ck_assert_uint_eq(x->now, PP_NOW_ARMED | PP_NOW_SWAP);
	be(FAKE_FAILS_LATE, PP_ORDER_CPUS, 1);
	missing_rings_add(&b.missing_rings);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.moods, 0);
	ck_assert_uint_eq(x->now, PP_NOW_ARMED | PP_NOW_SWAP);
	ck_assert_ptr_nonnull(strstr(b.engine.did, "arm1 aim2:1 arm1"));
	check_memory();
}
END_TEST

/* An order that fails is not given again at once, and again, and again. */
START_TEST(refusals)
{
	static const struct {
		uint32_t type;
		int error;
	} table[] = {
		{ PP_ORDER_ARM, E2BIG },     { PP_ORDER_ARM, EAGAIN }, { PP_ORDER_ARM, ENOENT },
		{ PP_ORDER_AIM, E2BIG },     { PP_ORDER_AIM, ENOENT }, { PP_ORDER_TURN, E2BIG },
		{ PP_ORDER_TURN, ENOENT },   { PP_ORDER_TURN, EBUSY }, { PP_ORDER_DISARM, EBUSY },
		{ PP_ORDER_DISARM, ENOMEM },
	};
	uint32_t type = table[_i].type;
	unsigned failed;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	b.engine.error = table[_i].error;
	be(FAKE_FAILS, type, 100);
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	broker_settle(&b);
	if (type == PP_ORDER_TURN)
		fire(2);
	if (type == PP_ORDER_DISARM)
		ck_assert_int_eq(client_delete(&root, "a", "t"), 0);
	broker_settle(&b);
	failed = 100 - b.engine.moods;
	ck_assert_uint_ge(failed, 1);
	ck_assert_uint_le(failed, 2);
	check_memory();

	be(FAKE_CALM, 0, 0);
	triggers_retry(&b.triggers);
	broker_settle(&b);
	if (type == PP_ORDER_DISARM) {
		ck_assert_uint_eq(b.engine.events[0].now, 0);
		return;
	}
	ck_assert_uint_eq(b.engine.events[0].now, PP_NOW_ARMED | PP_NOW_SWAP);
	ck_assert_uint_eq(fake_trigger(&b.engine, 2)->n_targets, 1);
	ck_assert_uint_eq(b.ready, type == PP_ORDER_TURN);
	check_memory();
}
END_TEST

/* ── events that go ─────────────────────────────────────────────────────────────────────── */

static void delete_while_waiting(const char *name)
{
	struct pp_msg_name which = client_name("a", name);

	client_send(&root, PP_OP_DELETE, &which);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_settle(&b);
	check_memory();
}

START_TEST(a_target_goes_before_it_is_armed)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	b.engine.holds_after = 1;
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x,y"), 0);
	ck_assert_ptr_nonnull(b.triggers.about);
	delete_while_waiting("x");
	expect("arm1 arm2 aim3:2");
}
END_TEST

START_TEST(a_trigger_goes_before_it_is_aimed)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	b.engine.holds_after = 2;
	ck_assert_int_eq(client_trigger(&root, "a", "t", "x"), 0);
	expect("arm1");
	delete_while_waiting("t");
	expect("aim2:1 off1");
}
END_TEST

START_TEST(a_target_goes_before_it_is_turned)
{
	begin();
	fake_wait(&b.engine, true);
	fire(3);
	broker_settle(&b);
	delete_while_waiting("y");
	expect("turn1");
	ck_assert_uint_eq(b.ready, 1);
}
END_TEST

/* The order is queued, and the engine has lost its event. */
START_TEST(the_engine_forgets_an_event)
{
	begin();
	fake_wait(&b.engine, true);
	fire(3);
	broker_settle(&b);
	ck_assert_ptr_nonnull(b.triggers.about);
	fake_unmake(&b.engine, b.triggers.about->truth.id);
	fake_hang_up(&b.engine);
	b.engine.hold = false;
	broker_until(&b, b.ready == 1);
	expect("turn2 aim3:2");
	check_memory();
}
END_TEST

/* The namespace is gone with its last event; its tapes, which somebody looked at, are not. */
START_TEST(tapes_outlive_their_namespace)
{
	struct pp_msg_watch_request watch = { 0 };
	struct client team;

	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &team, MEMBER);
	ck_assert_int_eq(setegid(0), 0);
	begin();
	b.triggers.after = 1; /* as if the last order had been about x */
	b.engine.holds_after = 1;
	fire(3);
	expect("turn2");
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 4), 0);
	ck_assert_uint_eq(b.ready, 0);
	client_send(&team, PP_OP_WATCH, &watch);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_uint_eq(team.body.notice.kind, PP_NOTICE_STARTED);
	/* The turn of x is under way until the last of them is gone. */
	while (b.engine.n > 0)
		fake_unmake(&b.engine, b.engine.events[0].id);
	fake_hang_up(&b.engine);
	b.engine.hold = false;
	broker_until(&b, b.ready == 1);
	ck_assert_uint_eq(b.lifecycle.registry.n_namespaces, 0);
	do
		ck_assert_int_eq(client_receive(&team), 0);
	while (team.body.notice.kind != PP_NOTICE_TAPE);
	ck_assert_uint_eq(team.body.notice.event.id, 4);
	client_end(&team);
	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &team, MEMBER);
	ck_assert_int_eq(setegid(0), 0);
	ck_assert_int_eq(client_by_id(&team, PP_OP_SHOW, 4), 0);
	ck_assert_str_eq(team.body.event.name, "y");
	client_end(&team);
}
END_TEST

/* ── a new broker ───────────────────────────────────────────────────────────────────────── */

START_TEST(a_new_broker_goes_on)
{
	struct pp_spec spec = {
		.ns = "a",
		.event = "cpu-clock",
		.data_size = 1 << 16,
		.period = 4000,
		.flags = PP_EVENT_FREQ | PP_EVENT_ALL_CPUS,
		.mode = 0640,
	};
	struct fake_engine *f = &b.engine;

	broker_begin(&b);
	for (const char *name = "uvwxyz"; *name; name++) {
		spec.name[0] = *name;
		fake_make(f, &spec);
	}
	spec.name[0] = 't';
	spec.flags |= PP_EVENT_TRIGGER;
	fake_make(f, &spec);
	f->triggers[f->n_triggers++] =
		(struct fake_trigger){ .id = 7,
				       .spec = { .targets = "[v-z]", .hold_off = PP_HOLD_OFF_MIN },
				       .n_targets = 4,
				       .targets = { 2, 3, 4, 5 } };
	/* u was a target once; v and w fired; w has a tape of before; x and y are armed; z is not. */
	fake_arm(f, fake_find(f, 1), true);
	for (uint64_t id = 2; id <= 5; id++)
		fake_arm(f, fake_find(f, id), true);
	fake_find(f, 3)->now = PP_NOW_TURNED;
	fake_turn(f, fake_find(f, 3), true);
	fake_find(f, 2)->now = fake_find(f, 3)->now = PP_NOW_TURNED;
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	client_begin(&b, &root, 0);
	expect("turn2 off1 arm6 aim7:2,3,4,5,6");
	ck_assert_uint_eq(b.ready, 2);
	check_memory();
	ck_assert_int_eq(client_by_id(&root, PP_OP_RELEASE, 8), 0);
	expect("give8 turn3");
	ck_assert_uint_eq(b.ready, 3);
	client_end(&root);
	broker_end(&b);
}
END_TEST

/* An event that its last broker has armed without a second set stays as it is, if there is still no room. */
START_TEST(a_new_broker_has_no_room)
{
	struct pp_spec spec = {
		.ns = "a",
		.name = "x",
		.event = "cpu-clock",
		.data_size = 1 << 16,
		.period = 4000,
		.flags = PP_EVENT_FREQ | PP_EVENT_ALL_CPUS,
		.mode = 0640,
	};
	struct fake_engine *f = &b.engine;

	broker_begin(&b);
	fake_make(f, &spec);
	spec.name[0] = 't';
	spec.flags |= PP_EVENT_TRIGGER;
	fake_make(f, &spec);
	f->triggers[f->n_triggers++] =
		(struct fake_trigger){ .id = 2,
				       .spec = { .targets = "x", .hold_off = PP_HOLD_OFF_MIN },
				       .n_targets = 1,
				       .targets = { 1 } };
	fake_arm(f, fake_find(f, 1), false);
	b.config.max_memory = b.config.max_memory_per_namespace = 1 << 16;
	broker_limits(&b);
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	expect("aim2:1");
	broker_end(&b);
}
END_TEST

/* Whatever comes first in the enumeration: a target, or the trigger that has paused it. */
START_TEST(a_new_broker_tells_of_pauses)
{
	uint64_t target = _i ? 1 : 2, by = _i ? 2 : 1;
	struct pp_spec spec = {
		.ns = "a",
		.name = "x",
		.event = "cpu-clock",
		.data_size = 1 << 16,
		.period = 4000,
		.flags = PP_EVENT_FREQ | PP_EVENT_ALL_CPUS,
		.mode = 0640,
	};
	struct fake_engine *f = &b.engine;

	broker_begin(&b);
	for (uint64_t id = 1; id <= 2; id++) {
		spec.name[0] = id == target ? 'x' : 't';
		spec.flags ^= id == by ? PP_EVENT_TRIGGER : 0;
		fake_make(f, &spec);
		spec.flags &= ~PP_EVENT_TRIGGER;
	}
	f->triggers[f->n_triggers++] = (struct fake_trigger){
		.id = by,
		.spec = { .targets = "x", .hold_off = PP_HOLD_OFF_MIN, .action = PP_ACTION_PAUSE },
		.n_targets = 1,
		.targets = { target },
	};
	fake_arm(f, fake_find(f, target), false);
	fake_fire(f, by, false);
	fake_turn(f, fake_find(f, target), 0);
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	client_begin(&b, &root, 0);
	expect(_i ? "aim2" : "aim1");
	ck_assert_uint_eq(b.paused_by, 1);
	ck_assert_uint_eq(b.known, 1);
	expect_paused(target);
	/* Once. */
	fake_hang_up(f);
	broker_until(&b, *f->did);
	ck_assert_uint_eq(b.paused_by, 1);
	/* One that paused it while no engine was there. */
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	broker_settle(&b);
	fake_fire(f, by, false);
	fake_turn(f, fake_find(f, target), 0);
	fake_hang_up(f);
	broker_until(&b, b.paused_by == 2);
	ck_assert_uint_eq(b.known, 2);
	client_end(&root);
	broker_end(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("triggers");
	TCase *t = tcase_create("triggers");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, targets_are_armed_then_aimed_at);
	tcase_add_test(t, later_events_are_armed_too);
	tcase_add_loop_test(t, globs, 0, 12);
	tcase_add_test(t, second_names_are_no_targets);
	tcase_add_test(t, second_names_are_not_turned);
	tcase_add_test(t, another_name_has_the_rings);
	tcase_add_test(t, removing_the_trigger_disarms);
	tcase_add_test(t, changes_of_targets);
	tcase_add_test(t, many_targets);
	tcase_add_test(t, a_firing);
	tcase_add_test(t, firings_of_strangers);
	tcase_add_test(t, by_hand);
	tcase_add_test(t, windows);
	tcase_add_test(t, windows_that_are_open);
	tcase_add_test(t, windows_of_armed_events);
	tcase_add_test(t, windows_after_a_death);
	tcase_add_test(t, no_second_tape_by_a_pause);
	tcase_add_test(t, a_second_firing_waits);
	tcase_add_test(t, an_event_of_two_triggers);
	tcase_add_test(t, a_pause_of_a_turned_event);
	tcase_add_test(t, pauses);
	tcase_add_test(t, pauses_what_has_a_tape);
	tcase_add_test(t, no_second_tape_by_a_late_pause);
	tcase_add_test(t, orders_about_what_was_stopped);
	tcase_add_loop_test(t, deaths_while_pausing, 0, ARRAY_SIZE(deaths));
	tcase_add_test(t, freezes);
	tcase_add_test(t, what_is_kept_holds_up_nothing);
	tcase_add_test(t, notifies);
	tcase_add_test(t, notifies_often);
	tcase_add_test(t, actions_that_are_refused);
	tcase_add_test(t, no_memory_to_arm);
	tcase_add_test(t, a_second_set_comes_and_goes);
	tcase_add_test(t, a_second_set_that_nobody_needs);
	tcase_add_test(t, not_by_another_name);
	tcase_add_test(t, a_release_before_the_turn);
	tcase_add_test(t, no_memory_to_turn);
	tcase_add_loop_test(t, deaths_while_arming, 0, 4 * ARRAY_SIZE(deaths));
	tcase_add_loop_test(t, deaths_while_turning, 0, 2 * ARRAY_SIZE(deaths));
	tcase_add_loop_test(t, deaths_while_disarming, 0, ARRAY_SIZE(deaths));
	tcase_add_loop_test(t, deaths_while_firing, 0, 2);
	tcase_add_loop_test(t, deaths_while_releasing, 0, 2);
	tcase_add_test(t, lost_tapes);
	tcase_add_test(t, a_change_that_fails_late);
	tcase_add_loop_test(t, refusals, 0, 10);
	tcase_add_test(t, a_target_goes_before_it_is_armed);
	tcase_add_test(t, a_trigger_goes_before_it_is_aimed);
	tcase_add_test(t, a_target_goes_before_it_is_turned);
	tcase_add_test(t, the_engine_forgets_an_event);
	tcase_add_test(t, tapes_outlive_their_namespace);
	suite_add_tcase(s, t);
	t = tcase_create("a new broker");
	tcase_add_test(t, a_new_broker_goes_on);
	tcase_add_test(t, a_new_broker_has_no_room);
	tcase_add_loop_test(t, a_new_broker_tells_of_pauses, 0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
