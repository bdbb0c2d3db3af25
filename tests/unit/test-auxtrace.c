// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The keeper gets the AUX areas that events want, and no others, whatever dies, fails or is late;
 * those who ask for copies get them. CPUs 0 to 3 are online, of which the kernel keeps no account;
 * events have rings on 0 and 3.
 */
#include "fake-keeper.h"
#include "needs.h"
#include "daemon/broker/lifecycle/orders-internal.h"
#include "proto/clock.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define AREA (64ULL << 10)

static struct broker b;
static struct fake_keeper k;
static struct client root, team, member;

static void setup(void)
{
	broker_begin(&b);
	b.sideband.left = true; /* the keeper is the other's */
	keeper_start(&k, &b);
	k.size = 3 * 4096;
	b.quota.per_user.max[QUOTA_COPIES] = b.quota.root.max[QUOTA_COPIES] = 1 << 30;
	b.quota.total.max[QUOTA_COPIES] = 1 << 30;
	b.service.auxtrace = &b.auxtrace;
	ck_assert_int_ge(auxtrace_init(&b.auxtrace, b.loop, b.keeper), 0);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, TEAM);
	client_begin(&b, &member, MEMBER);
}

static void teardown(void)
{
	client_end(&root);
	client_end(&team);
	client_end(&member);
	keeper_stop(&k);
	/* This asserts that nothing is charged. */
	broker_end(&b);
}

/* The engine has another event with areas. */
static struct pp_event *add_event(const char *name, uint64_t size)
{
	struct pp_spec spec = {
		.ns = "a",
		.event = "pmu//",
		.flags = PP_EVENT_AUX | PP_EVENT_ALL_CPUS,
		.data_size = size,
		.mode = 0666,
	};
	struct pp_event *e;

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	e = fake_make(&b.engine, &spec);
	e->recorder = PP_RECORDER_AUX;
	e->memory = 4096;
	return e;
}

/* The broker finds what was added. */
static void find_events(void)
{
	if (b.engine.enumerated == 0)
		ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	else
		fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
}

/* Events with the ids 1 to n trace. */
static void begin(unsigned n)
{
	static const char *const names[] = { "x", "y", "z" };

	for (unsigned i = 0; i < n; i++)
		add_event(names[i], AREA);
	find_events();
	broker_until(&b, k.n_areas == 2 * n);
	broker_settle(&b);
	k.did[0] = '\0';
}

static struct event *event_of(uint64_t id)
{
	return registry_by_id(&b.lifecycle.registry, id);
}

static int take(struct client *c, uint32_t index)
{
	const struct pp_msg_auxtrace_request request = {
		.which = client_name("a", "x"),
		.first = index,
	};

	return client_call(c, PP_OP_AUXTRACE, &request);
}

static void send_take(struct client *c, uint32_t index)
{
	const struct pp_msg_auxtrace_request request = {
		.which = client_name("a", "x"),
		.first = index,
	};

	client_send(c, PP_OP_AUXTRACE, &request);
}

static uint64_t charged(uint32_t uid)
{
	const struct quota_account *user = quota_user(&b.quota, uid);

	return user ? user->used[QUOTA_COPIES] : 0;
}

/* ── somebody who waits ─────────────────────────────────────────────────────────────────── */

static struct aux_wait waiting;
static int answer; /* < 0: none yet */
static char sentence[PP_SENTENCE_SIZE];
static bool was_there; /* the event, at the answer */

static void on_done(struct aux_wait *wait, int error, const char *text)
{
	ck_assert_ptr_eq(wait, &waiting);
	ck_assert_int_lt(answer, 0);
	answer = error;
	was_there = event_of(wait->id) != NULL;
	snprintf(sentence, sizeof(sentence), "%s", text ?: "");
}

static void wait_for(uint64_t id)
{
	answer = -1;
	waiting = (struct aux_wait){ .id = id, .done = on_done };
	auxtrace_wait(&b.auxtrace, &waiting);
}

/* ── what the keeper has ────────────────────────────────────────────────────────────────── */

START_TEST(made_and_dropped)
{
	begin(1);
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS], 1);
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS_HELD], 1);
	ck_assert_uint_eq(k.areas[1].cpu, 3);
	ck_assert_uint_eq(k.areas[1].aux_size, AREA);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	broker_until(&b, k.areas[0].paused && k.areas[1].paused);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:1");
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	broker_until(&b, k.fd < 0);
	ck_assert_str_eq(k.did, "pause1:1 drop1:0 drop1:3");
	ck_assert_uint_eq(b.engine.aux, 1);
	ck_assert_uint_eq(k.connections, 1);
}
END_TEST

/* What an earlier broker has left is corrected. */
START_TEST(left_over)
{
	add_event("x", AREA);
	k.areas[k.n_areas++] =
		(struct pp_keep_area){ .event = 1, .cpu = 0, .aux_size = AREA, .paused = 1 };
	k.areas[k.n_areas++] = (struct pp_keep_area){ .event = 1, .cpu = 2, .aux_size = AREA };
	k.areas[k.n_areas++] = (struct pp_keep_area){ .event = 1, .cpu = 3, .aux_size = AREA };
	k.areas[k.n_areas++] = (struct pp_keep_area){ .event = 7, .cpu = 0, .aux_size = AREA };
	find_events();
	broker_until(&b, k.n_areas == 2);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:0 drop1:2 drop7:0");
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS_HELD], 2);
	ck_assert_uint_eq(b.engine.aux, 0);
}
END_TEST

START_TEST(keeper_dies)
{
	static const enum pp_keep_type at[] = { PP_KEEP_HELLO, PP_KEEP_AREAS_HELD, PP_KEEP_AREAS };

	begin(2);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		k.dies_at = at[i];
		keeper_forget(&k);
		keeper_hang_up(&k);
		broker_until(&b, k.dies_at == 0 && k.n_areas == 4);
		broker_settle(&b);
	}
	ck_assert_uint_eq(b.auxtrace.attempts, 0);
}
END_TEST

/* Each time: it is not tried without an end and without a pause. */
START_TEST(keeper_dies_of_a_request)
{
	uint64_t backoff = 0;

	begin(1);
	keeper_forget(&k);
	keeper_hang_up(&k);
	for (unsigned i = 0; i < 2; i++) {
		k.dies_at = PP_KEEP_AREAS;
		broker_until(&b, k.dies_at == 0);
		broker_until(&b, b.auxtrace.waiting);
		ck_assert_uint_gt(b.auxtrace.backoff, backoff);
		backoff = b.auxtrace.backoff;
	}
	broker_until(&b, k.n_areas == 2);
}
END_TEST

START_TEST(keeper_lies)
{
	begin(2);
	k.lies = true;
	keeper_hang_up(&k);
	broker_until(&b, k.connections >= 3);
	k.lies = false;
	broker_until(&b, b.auxtrace.known);
	broker_settle(&b);
	ck_assert_uint_eq(b.auxtrace.n_held, 4);
	ck_assert_str_eq(k.did, "");
}
END_TEST

/* The keeper does nothing else meanwhile, so it gets no more at once than 64 MiB, but one. */
START_TEST(portions)
{
	struct pp_event *x = add_event("x", 16ULL << 20), *y = add_event("y", 64ULL << 20);

	x->rings.bits[0] = y->rings.bits[0] = 0x7f;
	b.hotplug.online.bits[0] = 0x7f;
	find_events();
	broker_until(&b, k.n_areas == 14);
	broker_settle(&b);
	ck_assert_str_eq(
		k.did, "put1:0,1,2,3 put1:4,5,6 put2:0 put2:1 put2:2 put2:3 put2:4 put2:5 put2:6");
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS_HELD], 1);
}
END_TEST

/* Where the kernel keeps no account of CPUs. */
START_TEST(cpu_goes_and_comes)
{
	begin(2);
	auxtrace_went(&b.auxtrace, 3);
	b.hotplug.online.bits[0] = 0x7;
	auxtrace_continue(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "");
	ck_assert_int_eq(take(&root, 1), 0); /* what was traced before it went */
	k.did[0] = '\0';
	/* It is as dead on another connection. */
	keeper_hang_up(&k);
	broker_until(&b, k.connections == 2 && b.auxtrace.known);
	b.hotplug.online.bits[0] = 0xf;
	auxtrace_continue(&b.auxtrace);
	broker_until(&b, k.asked[PP_KEEP_AREAS] == 4);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "drop1:3 drop2:3 put1:3 put2:3");
	ck_assert_uint_eq(b.engine.aux, 4);
}
END_TEST

/* A PMU may have stopped for good. */
START_TEST(state_is_told_again)
{
	begin(3);
	ck_assert_int_eq(client_pause(&root, "a", "y", true), 0);
	broker_settle(&b);
	k.did[0] = '\0';
	auxtrace_continue(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "");
	auxtrace_retry(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:0 pause2:1 pause3:0");
	k.fails_at = PP_KEEP_AREAS_PAUSE;
	auxtrace_retry(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:0 pause2:1 pause3:0 pause2:1 pause3:0");
	/* One that has failed waits for that, too. */
	k.did[0] = '\0';
	k.fails_at = PP_KEEP_AREAS_PAUSE;
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "");
	ck_assert_uint_eq(k.fails_at, 0);
	auxtrace_retry(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:1 pause2:1 pause3:0");
}
END_TEST

/* ── orders that are answered late ──────────────────────────────────────────────────────── */

START_TEST(pause_during_an_order)
{
	struct pp_msg_pause_request pause = { .which = client_name("a", "x"), .pause = 1 };

	begin(2);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_PAUSE, &pause);
	broker_until(&b, event_of(1)->state == PP_EVENT_CHANGING);
	keeper_drop_area(&k, 2, 3);
	keeper_hang_up(&k);
	broker_until(&b, b.auxtrace.ordering);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_until(&b, k.n_areas == 4);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "pause1:1 put2:3");
	ck_assert_uint_eq(keeper_area(&k, 1, 3)->paused, 1);
	ck_assert_uint_eq(keeper_area(&k, 2, 3)->paused, 0);
	ck_assert_uint_eq(b.auxtrace.n_held, 4);
}
END_TEST

static void fail_orders(int error, unsigned times)
{
	b.engine.mood = FAKE_FAILS;
	b.engine.moody = PP_ORDER_AUX;
	b.engine.error = error;
	b.engine.moods = times;
}

/* y lacks an area, and the engine does not read the order for it. */
static void begin_late(void)
{
	begin(2);
	fake_wait(&b.engine, true);
	keeper_drop_area(&k, 2, 3);
	keeper_hang_up(&k);
	broker_until(&b, b.auxtrace.ordering);
	wait_for(2);
}

START_TEST(delete_during_an_order)
{
	struct pp_msg_name which = client_name("a", "x");

	begin_late();
	client_send(&root, PP_OP_DELETE, &which);
	broker_until(&b, event_of(1)->state == PP_EVENT_DELETING);
	auxtrace_continue(&b.auxtrace);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	broker_until(&b, keeper_area(&k, 2, 3));
	broker_settle(&b);
	ck_assert_str_eq(k.did, "put2:3 drop1:0 drop1:3");
	ck_assert_uint_eq(b.engine.aux, 3);
}
END_TEST

/* A second name inherits the areas, and the trace in them: they are not dropped meanwhile. */
START_TEST(inherited)
{
	struct pp_msg_name which = client_name("a", "x");
	struct pp_event *second;

	begin(1);
	second = add_event("second", AREA);
	second->shares = 1;
	second->origin = 1;
	find_events();
	broker_settle(&b);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_DELETE, &which);
	broker_until(&b, event_of(1)->state == PP_EVENT_DELETING);
	auxtrace_continue(&b.auxtrace);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "");
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

static void check_gone(void)
{
	broker_until(&b, k.n_areas == 2);
	broker_settle(&b);
	ck_assert_int_eq(answer, ENOENT);
	ck_assert(!was_there);
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS], 2);
	ck_assert_uint_eq(b.auxtrace.fds.n, 0);
	ck_assert_ptr_null(event_of(2));
}

/* The order succeeds, or fails, for an event that is about to be deleted. */
START_TEST(event_goes_during_an_order)
{
	struct pp_msg_name which = client_name("a", "y");

	begin_late();
	client_send(&root, PP_OP_DELETE, &which);
	broker_until(&b, event_of(2)->state == PP_EVENT_DELETING);
	if (_i)
		fail_orders(EBUSY, 1);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	check_gone();
}
END_TEST

/* The next engine does not know the event. */
START_TEST(event_goes_with_the_engine)
{
	begin_late();
	ck_assert(fake_unmake(&b.engine, 2));
	fake_hang_up(&b.engine);
	fake_wait(&b.engine, false);
	check_gone();
}
END_TEST

/* ── refusals ───────────────────────────────────────────────────────────────────────────── */

/* A request has one answer, whatever is wrong with it. */
START_TEST(refused_once)
{
	struct pp_msg_auxtrace_request request = {
		.which = client_name("a", "none"),
		.reserved = 1,
	};

	begin(1);
	ck_assert_int_eq(client_call(&root, PP_OP_AUXTRACE, &request), -EINVAL);
	broker_settle(&b);
	ck_assert(!client_has_reply(&root));
	request.reserved = 0;
	ck_assert_int_eq(client_call(&root, PP_OP_AUXTRACE, &request), -ENOENT);
}
END_TEST

/* perf_event_open(2) has the errors that the broker has for an event that is gone, or no engine. */
START_TEST(engine_refuses)
{
	static const int errors[] = { ENOENT, EAGAIN, EBUSY };

	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		fail_orders(errors[i], 1000);
		auxtrace_went(&b.auxtrace, 3);
		wait_for(1);
		broker_until(&b, answer >= 0);
		ck_assert_int_eq(answer, errors[i]);
		ck_assert_str_eq(sentence, "The fake failed.");
		broker_settle(&b); /* comes to an end */
		ck_assert_uint_eq(b.engine.moods, 999);
		ck_assert_int_eq(client_show(&root, "a", "x"), 0);
		ck_assert_int_eq(event_of(1)->aux_error, errors[i]);
		b.engine.moods = 0;
		auxtrace_retry(&b.auxtrace);
		broker_until(&b, k.asked[PP_KEEP_AREAS] == i + 2);
		broker_settle(&b);
		ck_assert_int_eq(event_of(1)->aux_error, 0);
	}
}
END_TEST

/* What cannot be had on one CPU keeps no other from tracing, though each is asked for alone. */
START_TEST(others_trace)
{
	struct pp_event *x = add_event("x", 64ULL << 20);

	x->rings.bits[0] = b.hotplug.online.bits[0] = 0x7;
	fail_orders(EBUSY, 1); /* CPU 0 */
	find_events();
	broker_until(&b, k.n_areas == 2);
	broker_settle(&b);
	ck_assert_str_eq(k.did, "put1:1 put1:2");
	ck_assert_int_eq(event_of(1)->aux_error, EBUSY);
	ck_assert_uint_eq(event_of(1)->aux_lacks.bits[0], 1);
	/* After a while, though nothing else happens. */
	ck_assert_int_gt(sd_event_source_get_enabled(b.auxtrace.again, NULL), 0);
	ck_assert_int_ge(sd_event_source_set_time_relative(b.auxtrace.again, 0), 0);
	broker_until(&b, k.n_areas == 3);
	broker_settle(&b);
	ck_assert_int_eq(event_of(1)->aux_error, 0);
}
END_TEST

/* Who waits is told when the engine stays away. */
START_TEST(engine_stays_away)
{
	begin(1);
	fake_wait(&b.engine, true);
	auxtrace_went(&b.auxtrace, 3);
	wait_for(1);
	ck_assert_int_lt(answer, 0);
	b.lifecycle.orders->patient = false;
	auxtrace_continue(&b.auxtrace);
	ck_assert_int_eq(answer, EAGAIN);
	ck_assert(was_there);
	b.lifecycle.orders->patient = true;
	fake_wait(&b.engine, false);
	broker_until(&b, k.asked[PP_KEEP_AREAS] == 2);
	broker_settle(&b);
}
END_TEST

/* The engine says of a CPU that it is offline: the others trace, and there is no order without an end. */
START_TEST(engine_knows_better)
{
	pp_cpumask_set(&b.engine.offline, 3);
	add_event("x", AREA);
	find_events();
	wait_for(1);
	broker_until(&b, answer >= 0);
	ck_assert_int_eq(answer, ENODEV);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.aux, 2);
	ck_assert_str_eq(k.did, "put1:0");
	b.engine.offline.bits[0] = 0;
	auxtrace_retry(&b.auxtrace);
	broker_until(&b, k.n_areas == 2);
}
END_TEST

START_TEST(keeper_refuses)
{
	begin(1);
	k.fails_at = PP_KEEP_AREAS;
	auxtrace_went(&b.auxtrace, 3);
	wait_for(1);
	broker_until(&b, answer >= 0);
	ck_assert_int_eq(answer, ENOMEM);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.aux, 2);
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS_HELD], 2);
	auxtrace_retry(&b.auxtrace);
	broker_until(&b, k.asked[PP_KEEP_AREAS] == 3);
}
END_TEST

/* ── copies ─────────────────────────────────────────────────────────────────────────────── */

START_TEST(copies)
{
	begin(1);
	ck_assert_int_eq(take(&team, 1), 0);
	ck_assert_str_eq(k.did, "take1:3");
	ck_assert_uint_eq(team.body.auxtrace_reply.cpu, 3);
	ck_assert_uint_eq(team.body.auxtrace_reply.total, 2);
	ck_assert_uint_eq(team.body.auxtrace_reply.size, k.size);
	ck_assert_uint_eq(team.fds.n, 1);
	ck_assert_uint_eq(charged(TEAM), k.size);
	ck_assert_int_eq(take(&team, 2), -EINVAL);
	k.dies_at = PP_KEEP_AREAS_TAKE;
	ck_assert_int_eq(take(&team, 0), -EAGAIN);
	broker_until(&b, k.n_areas == 2);
	broker_settle(&b);
	ck_assert_uint_eq(charged(TEAM), 0);
	/* One that cannot be had just now. */
	b.hotplug.online.bits[0] = 0x7;
	keeper_forget(&k);
	keeper_hang_up(&k);
	broker_until(&b, k.n_areas == 1);
	ck_assert_int_eq(take(&team, 1), -ENODATA);
}
END_TEST

/* Who has no room for a copy, or has gone, makes the keeper stop no PMU. */
START_TEST(room_comes_first)
{
	const uint64_t most =
		pp_spec_aux_copy(&(struct pp_spec){ .flags = PP_EVENT_AUX, .data_size = AREA });

	begin(1);
	b.quota.per_user.max[QUOTA_COPIES] = most - 1;
	ck_assert_int_eq(take(&team, 0), -EDQUOT);
	ck_assert_uint_eq(k.asked[PP_KEEP_AREAS_TAKE], 0);
	ck_assert_uint_eq(charged(TEAM), 0);
	b.quota.per_user.max[QUOTA_COPIES] = most;
	keeper_hold(&k, true);
	send_take(&team, 0);
	send_take(&member, 1);
	broker_settle(&b);
	ck_assert_uint_eq(charged(TEAM), most);
	ck_assert_uint_eq(charged(MEMBER), 0);
	client_end(&member);
	keeper_hold(&k, false);
	ck_assert_int_eq(client_receive(&team), 0);
	broker_until(&b, !b.service.askings);
	ck_assert_str_eq(k.did, "take1:0");
	ck_assert_uint_eq(charged(TEAM), k.size);
	ck_assert_uint_eq(charged(MEMBER), 0);
	client_begin(&b, &member, MEMBER);
}
END_TEST

/* An event with others beside it: all of them are handed over, so few CPUs at a time, and a copy takes twice the room. */
START_TEST(groups)
{
	const struct pp_spec spec = { .flags = PP_EVENT_AUX | PP_EVENT_AUX_GROUP,
				      .data_size = AREA };
	struct pp_event *e = add_event("x", AREA);

	e->spec.flags |= PP_EVENT_AUX_GROUP;
	e->n_sources = 3;
	e->rings.bits[0] = 0xf;
	find_events();
	broker_until(&b, k.n_areas == 4);
	ck_assert_uint_eq(k.n_beside, 2);
	ck_assert_uint_eq(pp_spec_aux_copy(&spec),
			  AREA + pp_spec_aux_copy(&(struct pp_spec){ .flags = PP_EVENT_AUX,
								     .data_size = AREA }));
	b.quota.per_user.max[QUOTA_COPIES] = pp_spec_aux_copy(&spec) - 1;
	ck_assert_int_eq(take(&team, 0), -EDQUOT);
	b.quota.per_user.max[QUOTA_COPIES]++;
	ck_assert_int_eq(take(&team, 0), 0);
}
END_TEST

/* As many descriptors as a packet has, whatever the number of CPUs and events. */
START_TEST(large_groups)
{
	struct pp_event *e = add_event("x", PP_AUX_SIZE_MIN);

	e->spec.flags |= PP_EVENT_AUX_GROUP;
	e->n_sources = PP_TERMS_MAX;
	e->rings.bits[0] = (1ULL << 40) - 1;
	b.hotplug.online.bits[0] = e->rings.bits[0];
	find_events();
	broker_until(&b, k.n_areas == 40);
	ck_assert_uint_eq(b.engine.aux, 3); /* 15, 15 and 10 of them */
}
END_TEST

/* Readers on many connections do not keep events from getting areas. */
START_TEST(orders_come_first)
{
	begin(1);
	b.engine.events[0].rings.bits[0] = 0xf;
	find_events();
	broker_until(&b, k.n_areas == 4);
	broker_settle(&b);
	keeper_hold(&k, true);
	send_take(&root, 0);
	broker_settle(&b);
	send_take(&team, 1);
	send_take(&member, 2);
	broker_settle(&b);
	k.did[0] = '\0';
	auxtrace_went(&b.auxtrace, 3);
	keeper_hold(&k, false);
	ck_assert_int_eq(client_receive(&member), 0);
	broker_until(&b, k.asked[PP_KEEP_AREAS] == 3);
	ck_assert_str_eq(k.did, "take1:0 drop1:3 take1:1 put1:3 take1:2");
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&team), 0);
}
END_TEST

static struct held_area *held_area(uint64_t event, uint32_t cpu)
{
	for (size_t i = 0; i < b.auxtrace.n_held; i++)
		if (b.auxtrace.held[i].is.event == event && b.auxtrace.held[i].is.cpu == cpu)
			return &b.auxtrace.held[i];
	return NULL;
}

/* An area rests, whatever becomes of others and of the connection. */
START_TEST(rests)
{
	const uint64_t far = UINT64_MAX / 2;

	begin(2);
	ck_assert_int_eq(take(&root, 0), 0);
	ck_assert_uint_gt(held_area(1, 0)->rests_until, 0);
	held_area(1, 0)->rests_until = far;
	k.fails_at = PP_KEEP_AREAS; /* so the keeper is asked what it has */
	auxtrace_went(&b.auxtrace, 3);
	auxtrace_continue(&b.auxtrace);
	broker_until(&b, k.asked[PP_KEEP_AREAS] == 4);
	broker_settle(&b);
	ck_assert_uint_eq(held_area(1, 0)->rests_until, far);
	keeper_hang_up(&k);
	broker_until(&b, k.connections == 2 && b.auxtrace.known);
	broker_settle(&b);
	ck_assert_uint_eq(held_area(1, 0)->rests_until, far);
	auxtrace_retry(&b.auxtrace);
	broker_until(&b, k.n_areas == 4);
	broker_settle(&b);
	k.did[0] = '\0';
	send_take(&root, 0);
	ck_assert_int_eq(take(&team, 1), 0);
	ck_assert_str_eq(k.did, "take1:3");
	held_area(1, 0)->rests_until = 0;
	auxtrace_continue(&b.auxtrace);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

/* A request can wait while the keeper reads tasks: the area rests for the copy's time. */
START_TEST(rests_are_short)
{
	uint64_t now;

	begin(1);
	keeper_hold(&k, true);
	send_take(&root, 0);
	broker_settle(&b);
	now = pp_clock_ns(CLOCK_MONOTONIC);
	b.auxtrace.asked = now - 150 * 1000000000ULL;
	keeper_hold(&k, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_lt(held_area(1, 0)->rests_until, now + 60 * 1000000000ULL);
}
END_TEST

/* ── patience ───────────────────────────────────────────────────────────────────────────── */

static uint64_t patience_seconds(void)
{
	uint64_t at, now;

	ck_assert_int_ge(sd_event_source_get_time(b.auxtrace.keeper.patience, &at), 0);
	ck_assert_int_ge(sd_event_now(b.loop, CLOCK_MONOTONIC, &now), 0);
	return (at - MIN(now, at)) / 1000000;
}

static void lose_patience(void)
{
	ck_assert_int_ge(sd_event_source_set_time_relative(b.auxtrace.keeper.patience, 0), 0);
}

/* The keeper reads tasks for the other connection, which may take 150 seconds. */
START_TEST(keeper_is_busy)
{
	pid_t pid = fork();
	uint64_t now;
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, ~0U, 0); /* or nothing that is hung up ends */
		for (;;)
			pause();
	}
	k.pid = (uint32_t)pid;
	begin(1);
	keeper_hold(&k, true);
	auxtrace_retry(&b.auxtrace);
	ck_assert_uint_gt(b.auxtrace.keeper.n_asked, 0);
	ck_assert_uint_gt(patience_seconds(), 150);
	/* The same for a greeting. */
	keeper_hang_up(&k);
	broker_until(&b, k.connections == 2);
	ck_assert_int_ge(sd_event_now(b.loop, CLOCK_MONOTONIC, &now), 0);
	b.auxtrace.keeper.silent_since = now - 150 * 1000000ULL;
	lose_patience();
	broker_until(&b, k.connections == 3);
	ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
	b.auxtrace.keeper.silent_since -= 30 * 1000000ULL;
	lose_patience();
	broker_until(&b, b.auxtrace.keeper.stuck);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	keeper_hang_up(&k);
	keeper_forget(&k);
	k.pid = FAKE_KEEPER_PID;
	keeper_hold(&k, false);
	broker_until(&b, k.n_areas == 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("auxtrace");
	TCase *t = tcase_create("all");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, made_and_dropped);
	tcase_add_test(t, left_over);
	tcase_add_test(t, keeper_dies);
	tcase_add_test(t, keeper_dies_of_a_request);
	tcase_add_test(t, keeper_lies);
	tcase_add_test(t, portions);
	tcase_add_test(t, cpu_goes_and_comes);
	tcase_add_test(t, state_is_told_again);
	tcase_add_test(t, pause_during_an_order);
	tcase_add_test(t, delete_during_an_order);
	tcase_add_test(t, inherited);
	tcase_add_test(t, others_trace);
	tcase_add_loop_test(t, event_goes_during_an_order, 0, 2);
	tcase_add_test(t, event_goes_with_the_engine);
	tcase_add_test(t, refused_once);
	tcase_add_test(t, engine_refuses);
	tcase_add_test(t, engine_knows_better);
	tcase_add_test(t, engine_stays_away);
	tcase_add_test(t, keeper_refuses);
	tcase_add_test(t, copies);
	tcase_add_test(t, room_comes_first);
	tcase_add_test(t, groups);
	tcase_add_test(t, large_groups);
	tcase_add_test(t, orders_come_first);
	tcase_add_test(t, rests);
	tcase_add_test(t, rests_are_short);
	tcase_add_test(t, keeper_is_busy);
	suite_add_tcase(s, t);
	return run_suite(s);
}
