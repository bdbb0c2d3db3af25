// SPDX-License-Identifier: LGPL-2.1-or-later
/* The link and the life of events: an engine that dies, returns, changes and lies. */
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
	/* Nothing remains, neither name nor namespace. */
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

/* An order that was carried out but not answered is found, not repeated. */
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
	/* The broker reads again. */
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

/* While the engine was offline events were created and deleted: the registry follows. */
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

/* A reserved name without an order exists in the engine all the same: another broker made it. */
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

/* Whoever asks is told of an engine when lists are of what it has, and not of what was known. */
START_TEST(an_engine_that_has_told_all)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(orders_engine_pid(b.lifecycle.orders), getpid());
	b.engine.reticent = true;
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, b.engine.enumerated == 2);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.listed, 1);
	ck_assert_int_eq(orders_engine_pid(b.lifecycle.orders), 0);
	b.engine.reticent = false;
	fake_list(&b.engine);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_int_eq(orders_engine_pid(b.lifecycle.orders), getpid());
}
END_TEST

/* Each lie breaks the link; a new enumeration then finds the truth. */
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

/* An engine that reports two events with one name does not confuse the broker. */
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

/* ── programs ───────────────────────────────────────────────────────────────────────────── */

static uint64_t programs_of(uint32_t uid)
{
	const struct quota_account *a = quota_user(&b.quota, uid);

	return a ? a->used[QUOTA_PROGRAMS] : 0;
}

/* The engine expands a glob, within the allowance at the time of the order. */
START_TEST(programs_are_charged)
{
	const struct pp_allowance *allowed = &b.engine.last.allowance;
	struct client team;

	b.config.makers = POLICY_ALL;
	b.config.max_programs = 10;
	b.config.max_programs_per_user = 7;
	broker_limits(&b);
	client_begin(&b, &team, TEAM);
	b.engine.sources = 3;
	ck_assert_int_eq(client_create(&team, "a", "x"), 0);
	ck_assert_uint_eq(allowed->sources, 7);
	ck_assert_uint_eq(allowed->creator_there, 8);
	ck_assert_uint_eq(allowed->all_there, 48);
	ck_assert_uint_ne(allowed->work, UINT32_MAX);
	ck_assert_uint_eq(programs_of(TEAM), 3);
	/* Two orders at the same time cannot both use the remaining allowance. */
	fake_wait(&b.engine, true);
	client_send_create(&team, "a", "y");
	client_send_create(&team, "a", "z");
	broker_settle(&b);
	ck_assert_uint_eq(programs_of(TEAM), 5);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_int_eq(client_receive(&team), 0);
	ck_assert_uint_eq(allowed->sources, 1);
	ck_assert_uint_eq(programs_of(TEAM), 9); /* (the fake ignores its allowance) */
	ck_assert_int_eq(client_create(&team, "a", "none"), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(team.body.error.message, "MaxProgramsPerUser="));
	ck_assert_uint_eq(b.engine.created, 3);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 3);
	/* Root has no limit, and no tracepoint is too full for it. */
	b.engine.sources = 1;
	ck_assert_int_eq(client_create(&root, "b", "r"), 0);
	ck_assert_uint_eq(allowed->sources, 1);
	ck_assert_uint_eq(allowed->creator_there, UINT32_MAX);
	ck_assert_uint_eq(allowed->all_there, UINT32_MAX);
	ck_assert_int_eq(client_create(&root, "b", "none"), -EDQUOT);
	/* Events found at start are charged, beyond any limit. */
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(programs_of(TEAM), 9);
	ck_assert_uint_eq(b.quota.sum.used[QUOTA_PROGRAMS], 10);
	ck_assert_int_eq(client_delete(&team, "a", "x"), 0);
	ck_assert_int_eq(client_delete(&team, "a", "y"), 0);
	ck_assert_int_eq(client_delete(&team, "a", "z"), 0);
	ck_assert_uint_eq(programs_of(TEAM), 0);
	client_end(&team);
}
END_TEST

static uint64_t samples_of(uint32_t uid)
{
	const struct quota_account *a = quota_user(&b.quota, uid);

	return a ? a->used[QUOTA_SAMPLES] : 0;
}

/* The charge matches the fake's events, which sample at 4000 Hz; root has no limit. */
START_TEST(samples_are_charged)
{
	struct client team;

	b.config.makers = POLICY_ALL;
	b.config.max_sample_rate_per_user = 9000;
	broker_limits(&b);
	client_begin(&b, &team, TEAM);
	ck_assert_int_eq(client_create(&team, "a", "x"), 0);
	ck_assert_int_eq(client_create(&team, "a", "y"), 0);
	ck_assert_int_eq(client_create(&team, "a", "none"), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(team.body.error.message, "MaxSampleRatePerUser="));
	for (int i = 0; i < 4; i++) {
		char name[2] = { (char)('e' + i) };

		ck_assert_int_eq(client_create(&root, "b", name), 0);
	}
	ck_assert_uint_eq(samples_of(0), 16000);
	/* The same after a new enumeration. */
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(samples_of(TEAM), 8000);
	ck_assert_int_eq(client_delete(&team, "a", "x"), 0);
	ck_assert_int_eq(client_create(&team, "a", "z"), 0);
	ck_assert_uint_eq(samples_of(TEAM), 8000);
	client_end(&team);
}
END_TEST

/* A second name costs nothing, until it inherits the rings. */
START_TEST(programs_are_inherited)
{
	struct pp_msg_create_request request = {
		.ns = "a",
		.name = "second",
		.flags = PP_EVENT_SHARE,
		.count = 1,
		.selections[0].event = "cpu-clock",
	};
	struct client team;

	client_begin(&b, &team, TEAM);
	b.config.makers = POLICY_ALL;
	b.engine.sources = 3;
	ck_assert_int_eq(client_create(&team, "a", "first"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert_uint_ne(root.body.event.shares, 0);
	ck_assert_uint_eq(programs_of(0), 0);
	ck_assert_uint_eq(samples_of(0), 0);
	ck_assert_int_eq(client_delete(&team, "a", "first"), 0);
	ck_assert_uint_eq(programs_of(0), 3);
	ck_assert_uint_eq(samples_of(0), 4000);
	ck_assert_uint_eq(programs_of(TEAM), 0);
	client_end(&team);
}
END_TEST

/* A user without room for another's deleted event does not inherit it: then it ends under all its
 * names. */
START_TEST(nobody_inherits_over_a_limit)
{
	struct pp_msg_create_request request = {
		.ns = "b",
		.flags = PP_EVENT_SHARE,
		.count = 1,
		.selections[0].event = "cpu-clock",
	};
	unsigned deleted;
	struct client team;

	b.config.max_programs_per_user = 7;
	b.config.makers = POLICY_ALL;
	broker_limits(&b);
	client_begin(&b, &team, TEAM);
	b.engine.sources = 3;
	ck_assert_int_ge(
		registry_configure(&b.lifecycle.registry, "a", 0, 0, 0644, NAMESPACE_LIVE_READERS),
		0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	for (const char *name = "yz"; *name; name++) {
		request.name[0] = *name;
		ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
		ck_assert_uint_eq(team.body.event.shares, 1);
	}
	/* Seven of seven, and then three too many. */
	b.engine.sources = 7;
	request.flags = PP_EVENT_NO_SHARE;
	strcpy(request.name, "own");
	deleted = b.notices[PP_NOTICE_DELETED];
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(programs_of(TEAM), 7);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.engine.last.allowance.sources, 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], deleted + 3);
	ck_assert_int_eq(client_show(&team, "b", "y"), -ENOENT);
	ck_assert_int_eq(client_show(&team, "b", "z"), -ENOENT);
	ck_assert_uint_eq(programs_of(TEAM), 7);
	ck_assert_uint_eq(programs_of(0), 0);
	ck_assert_uint_eq(b.lifecycle.registry.n_events, 1);
	/* Inheriting one's own event adds nothing, whatever the limit. */
	strcpy(request.name, "mine");
	request.flags = PP_EVENT_SHARE;
	ck_assert_int_eq(client_call(&team, PP_OP_CREATE, &request), 0);
	ck_assert_uint_ne(team.body.event.shares, 0);
	ck_assert_int_eq(client_delete(&team, "b", "own"), 0);
	ck_assert_int_eq(client_show(&team, "b", "mine"), 0);
	ck_assert_uint_eq(team.body.event.shares, 0);
	ck_assert_uint_eq(programs_of(TEAM), 7);
	client_end(&team);
}
END_TEST

/* ── changes, pauses, second names ──────────────────────────────────────────────────────── */

static int change(struct client *c, const char *name, uint32_t what, uint64_t size, uint64_t rate,
		  const char *filter)
{
	struct pp_msg_change_request request = {
		.which = client_name("a", name),
		.what = what,
		.data_size = size,
		.max_rate = rate,
	};

	snprintf(request.filter, sizeof(request.filter), "%s", filter);
	return client_call(c, PP_OP_CHANGE, &request);
}

static int change_freq(struct client *c, uint64_t freq)
{
	struct pp_msg_change_request request = {
		.which = client_name("a", "x"),
		.what = PP_CHANGE_PERIOD,
		.flags = PP_EVENT_FREQ,
		.period = freq,
	};

	return client_call(c, PP_OP_CHANGE, &request);
}

/* Samples are charged before the order, and given back when they are less, or when it fails. */
START_TEST(changes_of_samples_are_charged)
{
	struct client team, other;

	b.config.max_sample_rate_per_user = 9000;
	broker_limits(&b);
	ck_assert_int_eq(client_create(&root, "a", "roots"), 0);
	ck_assert_int_ge(
		registry_configure(&b.lifecycle.registry, "a", TEAM, 0, 0666, NAMESPACE_LIVE_GROUP),
		0);
	client_begin(&b, &team, TEAM);
	client_begin(&b, &other, TEAM + 1);
	ck_assert_int_eq(client_create(&team, "a", "x"), 0);
	ck_assert_uint_eq(samples_of(TEAM), 4000);
	ck_assert_int_eq(change_freq(&team, 9000), 0);
	ck_assert_uint_eq(team.body.event.period, 9000);
	ck_assert_uint_eq(samples_of(TEAM), 9000);
	ck_assert_int_eq(change_freq(&team, 9001), -EDQUOT);
	ck_assert_ptr_nonnull(strstr(team.body.error.message, "MaxSampleRatePerUser="));
	ck_assert_uint_eq(samples_of(TEAM), 9000);
	ck_assert_uint_eq(b.engine.changed, 1);
	ck_assert_int_eq(change_freq(&team, 100), 0);
	ck_assert_uint_eq(samples_of(TEAM), 100);
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(change_freq(&team, 5000), -E2BIG);
	ck_assert_uint_eq(samples_of(TEAM), 100);
	/* Others would spend what is the creator's. */
	ck_assert_int_eq(change_freq(&other, 50), -EACCES);
	ck_assert_int_eq(change_freq(&root, 9001), -EDQUOT);
	ck_assert_int_eq(change_freq(&root, 8000), 0);
	ck_assert_uint_eq(samples_of(TEAM), 8000);
	/* An engine that dies has done it, or does it. */
	be(FAKE_DIES_AFTER, 1);
	ck_assert_int_eq(change_freq(&team, 7000), 0);
	ck_assert_uint_eq(samples_of(TEAM), 7000);
	be(FAKE_DIES_BEFORE, 1);
	ck_assert_int_eq(change_freq(&team, 6000), 0);
	ck_assert_uint_eq(samples_of(TEAM), 6000);
	be(FAKE_DIES_BEFORE, 4); /* other orders are under way, too */
	ck_assert_int_eq(change_freq(&team, 9000), -EAGAIN);
	be(FAKE_CALM, 0);
	ck_assert_uint_eq(samples_of(TEAM), 6000);
	ck_assert_int_eq(client_delete(&team, "a", "x"), 0);
	ck_assert_uint_eq(samples_of(TEAM), 0);
	client_end(&team);
	client_end(&other);
}
END_TEST

static uint64_t used(enum quota_kind kind)
{
	return b.quota.sum.used[kind];
}

static uint64_t real_memory(uint64_t data_size)
{
	return 2 * (PP_RING_PAGE + data_size + 4096);
}

/* Buffers are charged to the event's creator: only the creator and root may change them. */
START_TEST(whose_buffers_they_are)
{
	uint64_t before;
	struct client other;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_ge(registry_configure(&b.lifecycle.registry, "a", MEMBER, 0, 0600,
					    NAMESPACE_LIVE_GROUP),
			 0);
	client_begin(&b, &other, MEMBER);
	before = used(QUOTA_MEMORY);
	ck_assert_int_eq(change(&other, "x", PP_CHANGE_MAX_RATE, 0, 5, ""), 0);
	ck_assert_int_eq(change(&other, "x", PP_CHANGE_BUFFER, 1 << 20, 0, ""), -EACCES);
	ck_assert_uint_eq(used(QUOTA_MEMORY), before);
	ck_assert_int_eq(client_create(&other, "a", "mine"), 0);
	ck_assert_int_eq(change(&other, "mine", PP_CHANGE_BUFFER, 1 << 20, 0, ""), 0);
	ck_assert_int_eq(change(&root, "mine", PP_CHANGE_BUFFER, 8192, 0, ""), 0);
	client_end(&other);
}
END_TEST

START_TEST(changes)
{
	uint64_t old = real_memory(512 * 1024), new = real_memory(8192);

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.memory, old);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_FILTER | PP_CHANGE_MAX_RATE, 0, 5, "a == 1"),
			 0);
	ck_assert_str_eq(root.body.event.filter, "a == 1");
	ck_assert_uint_eq(root.body.event.max_rate, 5);
	ck_assert_uint_eq(root.body.event.set, 1);
	ck_assert_uint_eq(b.engine.last_nodes, 1);
	ck_assert_uint_eq(b.engine.last_sources, 0);
	/* Unchanged settings stay. */
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 5000, 0, ""), 0);
	ck_assert_str_eq(root.body.event.filter, "a == 1");
	ck_assert_uint_eq(root.body.event.data_size, 8192);
	ck_assert_uint_eq(root.body.event.set, 2);
	ck_assert_uint_eq(root.body.event.memory, new);
	/* The old rings are charged until nothing holds them. */
	ck_assert_uint_eq(used(QUOTA_MEMORY), old + new);
	ck_assert_uint_eq(b.quota.sum.held, old);
	fake_release(&b.engine, 100);
	broker_until(&b, b.quota.sum.held == 100);
	fake_release(&b.engine, 0);
	broker_until(&b, b.quota.sum.held == 0);
	ck_assert_uint_eq(used(QUOTA_MEMORY), new);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 2);
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 1 << 20, 0, ""), -E2BIG);
	ck_assert_uint_eq(used(QUOTA_MEMORY), new);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	/* An order that exceeds its user's limit is not sent. */
	b.config.max_memory = 1 << 20;
	broker_limits(&b);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 1 << 20, 0, ""), -EDQUOT);
	ck_assert_uint_eq(b.engine.changed, 2);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_FILTER, 0, 0, "a =="), -EINVAL);
}
END_TEST

START_TEST(death_at_a_change)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	be(FAKE_DIES_AFTER, 1);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 8192, 0, ""), 0);
	ck_assert_uint_eq(b.engine.changed, 1);
	ck_assert_uint_eq(root.body.event.set, 2);
	ck_assert_uint_eq(used(QUOTA_MEMORY), real_memory(8192) + real_memory(512 * 1024));
	be(FAKE_DIES_BEFORE, 1);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_FILTER, 0, 0, "a == 1"), 0);
	ck_assert_uint_eq(b.engine.changed, 2);
	be(FAKE_DIES_BEFORE, 2);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 1 << 20, 0, ""), -EAGAIN);
	ck_assert_uint_eq(used(QUOTA_MEMORY), real_memory(8192) + real_memory(512 * 1024));
	be(FAKE_DIES_AFTER, 1);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(b.engine.paused, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
}
END_TEST

/* The change is there, but nobody may take it for a success. */
START_TEST(a_change_that_left_its_event_paused)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	be(FAKE_DIES_PAUSED, 1);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_BUFFER, 8192, 0, ""), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "it is paused now"));
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	ck_assert_uint_eq(used(QUOTA_MEMORY), real_memory(8192) + real_memory(512 * 1024));
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
	/* An event that was paused before stays so. */
	be(FAKE_DIES_PAUSED, 1);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_MAX_RATE, 0, 1, ""), 0);
}
END_TEST

START_TEST(pauses)
{
	struct pp_msg_pause_request request = { .which = client_name("a", "x"), .pause = 1 };

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(root.body.pause_reply.count, 1);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(root.body.pause_reply.count, 0);
	ck_assert_uint_eq(b.engine.paused, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
	/* A paused event can be changed and deleted. */
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_MAX_RATE, 0, 1, ""), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_RESUMED], 1);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_PAUSE, &request);
	client_send(&root, PP_OP_PAUSE, &request);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	ck_assert_int_eq(client_delete(&root, "a", "x"), -EBUSY);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

START_TEST(pauses_of_a_namespace)
{
	char name[16];

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		ck_assert_int_eq(client_create(&root, i < 15 ? "a" : "b", name), 0);
	}
	ck_assert_int_eq(client_pause(&root, "a", "e3", true), 0);
	ck_assert_int_eq(client_pause(&root, "a", "", true), 0);
	ck_assert_uint_eq(root.body.pause_reply.count, 14);
	ck_assert_uint_eq(b.engine.paused, 15);
	ck_assert_int_eq(client_show(&root, "b", "e15"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	/* One fails; the others are paused, and the reply says so. */
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(client_pause(&root, "a", "", false), -E2BIG);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "14 of 15"));
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "The fake failed."));
	ck_assert_int_eq(client_pause(&root, "a", "", false), 0);
	ck_assert_uint_eq(root.body.pause_reply.count, 1);
	ck_assert_int_eq(client_pause(&root, "nowhere", "", false), -ENOENT);
}
END_TEST

START_TEST(second_names)
{
	uint64_t memory = real_memory(512 * 1024);
	const struct event *z;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_share(&root, "b", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	ck_assert_uint_eq(root.body.event.memory, 0);
	/* A name for a name is a name for the rings. */
	ck_assert_int_eq(client_share(&root, "b", "z"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	ck_assert_uint_eq(b.engine.created, 1);
	ck_assert_uint_eq(b.engine.aliased, 2);
	ck_assert_uint_eq(used(QUOTA_EVENTS), 3);
	ck_assert_uint_eq(used(QUOTA_MEMORY), memory);
	/* A user of shared rings shares pauses, and cannot change another's event. */
	ck_assert_int_eq(client_pause(&root, "b", "y", true), -EBUSY);
	ck_assert_int_eq(change(&root, "x", PP_CHANGE_MAX_RATE, 0, 1, ""), -EBUSY);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "shares its rings"));
	ck_assert_int_eq(client_pause(&root, "b", "", true), -EBUSY);
	ck_assert_ptr_nonnull(strstr(root.body.error.message, "a/x"));
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 3);
	ck_assert_int_eq(client_show(&root, "b", "z"), 0);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_PAUSED);
	/* The rings' programs wake readers by the first name's id. */
	z = registry_by_name(&b.lifecycle.registry, "b", "z");
	ck_assert_uint_eq(z->truth.origin, 1);
	/* A paused event is not what the request asks for. */
	ck_assert_int_eq(client_share(&root, "b", "own"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	ck_assert_int_eq(client_delete(&root, "b", "own"), 0);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);

	/* The rings live on under the oldest of the other names. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_show(&root, "b", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	ck_assert_uint_eq(root.body.event.memory, memory);
	ck_assert_int_eq(client_show(&root, "b", "z"), 0);
	ck_assert_uint_eq(root.body.event.shares, 2);
	ck_assert_uint_eq(quota_namespace(&b.quota, "b")->used[QUOTA_MEMORY], memory);
	ck_assert_ptr_null(quota_namespace(&b.quota, "a"));
	ck_assert_int_eq(client_delete(&root, "b", "z"), 0);
	ck_assert_uint_eq(used(QUOTA_MEMORY), memory);
	ck_assert_int_eq(client_delete(&root, "b", "y"), 0);
	ck_assert_uint_eq(used(QUOTA_MEMORY), 0);
}
END_TEST

START_TEST(sharing_by_default)
{
	struct pp_msg_create_request request = {
		.ns = "a",
		.name = "own",
		.flags = PP_EVENT_NO_SHARE,
		.count = 1,
		.selections[0].event = "cpu-clock",
	};

	b.config.share = true;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	/* Paused together with the owner of the rings. */
	ck_assert_int_eq(client_pause(&root, "a", "", true), 0);
	ck_assert_uint_eq(root.body.pause_reply.count, 3);
	ck_assert_uint_eq(b.engine.paused, 2);
	/* Any difference prevents sharing. */
	ck_assert_int_eq(client_pause(&root, "a", "", false), 0);
	snprintf(request.name, sizeof(request.name), "other");
	request.flags = 0;
	request.max_rate = 1;
	ck_assert_int_eq(client_call(&root, PP_OP_CREATE, &request), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
}
END_TEST

/* An event's creator can pause all of its names: a client depends on other users only on
 * request. */
START_TEST(sharing_with_strangers_is_asked_for)
{
	struct client member;

	b.config.share = true;
	b.config.makers = POLICY_ALL;
	client_begin(&b, &member, MEMBER);
	ck_assert_int_eq(client_create(&member, "theirs", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	ck_assert_int_eq(client_share(&root, "a", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	/* Root's name for another user's rings is no better. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "b", "x"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
	/* Its own events, and those in the same namespace. */
	ck_assert_int_eq(client_create(&member, "mine", "x"), 0);
	ck_assert_uint_eq(member.body.event.shares, 1);
	ck_assert_int_eq(client_create(&root, "theirs", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 1);
	client_end(&member);
}
END_TEST

/* ── charges ────────────────────────────────────────────────────────────────────────────── */

START_TEST(a_deleted_ring_that_is_mapped_stays_charged)
{
	uint64_t memory = real_memory(512 * 1024);

	b.engine.holds = true;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(used(QUOTA_EVENTS), 0);
	ck_assert_uint_eq(used(QUOTA_MEMORY), memory);
	ck_assert_uint_eq(b.quota.sum.held, memory);
	/* Even when the engine dies; and the enumeration shows which rings were freed meanwhile. */
	b.engine.held[0].bytes = 77;
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.quota.sum.held, memory);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.quota.sum.held, 77);
	ck_assert_uint_eq(used(QUOTA_MEMORY), 77);
	b.engine.n_held = 0;
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(used(QUOTA_MEMORY), 0);
}
END_TEST

START_TEST(a_limit_reached_a_thousand_times)
{
	uint64_t estimate = 2 * (512 * 1024 + 65536 + 16384);

	b.config.max_memory = estimate;
	broker_limits(&b);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(client_create(&root, "a", "x"), 0);
		ck_assert_int_eq(client_create(&root, "a", "y"), -EDQUOT);
		ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	}
	ck_assert_uint_eq(used(QUOTA_MEMORY), 0);
	ck_assert_uint_eq(used(QUOTA_EVENTS), 0);
	ck_assert_uint_eq(b.quota.namespaces.n, 0);
	be(FAKE_FAILS, 1);
	ck_assert_int_eq(client_create(&root, "a", "x"), -E2BIG);
	ck_assert_uint_eq(used(QUOTA_MEMORY), 0);
}
END_TEST

/* ── the queue ──────────────────────────────────────────────────────────────────────────── */

static size_t place_in_queue(const char *name)
{
	size_t n = 0;

	for (struct order *o = orders_first(b.lifecycle.orders); o; o = o->next, n++)
		if (strcmp(o->spec->name, name) == 0)
			return n;
	ck_abort_msg("%s is not in the queue", name);
}

START_TEST(users_take_turns_in_the_queue)
{
	struct client one, two;
	char name[16];

	b.config.makers = POLICY_ALL;
	client_begin(&b, &one, MEMBER);
	client_begin(&b, &two, MEMBER + 1);
	fake_wait(&b.engine, true);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "one%d", i);
		client_send_create(&one, "one", name);
	}
	broker_settle(&b);
	client_send_create(&two, "two", "two0");
	client_send_create(&two, "two", "two1");
	broker_settle(&b);
	/* After the order under way; then one of each user. */
	ck_assert_uint_eq(place_in_queue("one0"), 0);
	ck_assert_uint_eq(place_in_queue("two0"), 1);
	ck_assert_uint_eq(place_in_queue("one1"), 2);
	ck_assert_uint_eq(place_in_queue("two1"), 3);
	ck_assert_uint_eq(place_in_queue("one9"), 11);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&two), 0);
	ck_assert_uint_le(b.engine.created, 3);
	client_end(&one);
	client_end(&two);
}
END_TEST

/* The namespace's rights differ from its events' files: the broker corrects the files. */
START_TEST(rights_follow_the_configuration)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(
		registry_configure(&b.lifecycle.registry, "a", 0, 77, 0600, NAMESPACE_LIVE_GROUP),
		1);
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, b.engine.given_rights == 1);
	broker_until(&b, !orders_first(b.lifecycle.orders));
	ck_assert_uint_eq(b.engine.events[1].spec.group, 77);
	ck_assert_uint_eq(b.engine.events[1].spec.mode, 0600);
	ck_assert_int_eq(
		registry_configure(&b.lifecycle.registry, "a", 5, 77, 0600, NAMESPACE_LIVE_GROUP),
		1);
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, b.engine.given_rights == 2);
	broker_until(&b, !orders_first(b.lifecycle.orders));
	ck_assert_uint_eq(b.engine.events[1].spec.owner, 5);
	/* Only once: the next time everything matches. */
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.given_rights, 2);
}
END_TEST

/* Changes from before this daemon cause notices, too. */
START_TEST(notices)
{
	struct pp_spec spec;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CREATED], 2);
	spec = b.engine.events[0].spec;
	b.engine.events[0].paused = 1;
	b.engine.events[0].spec.max_rate = 1;
	fake_unmake(&b.engine, 2);
	snprintf(spec.name, sizeof(spec.name), "new");
	fake_make(&b.engine, &spec);
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_uint_eq(b.notices[PP_NOTICE_CREATED], 3);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CHANGED], 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_PAUSED], 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], 1);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], 2);
}
END_TEST

START_TEST(ending_with_orders_under_way)
{
	fake_wait(&b.engine, true);
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

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, failures_are_the_engines_own_words);
	tcase_add_test(t, death_before_a_creation);
	tcase_add_test(t, an_engine_that_has_told_all);
	tcase_add_test(t, death_after_a_creation);
	tcase_add_test(t, death_again_and_again);
	tcase_add_test(t, death_at_a_deletion);
	tcase_add_test(t, orders_wait_for_an_engine_that_returns);
	tcase_add_test(t, reconciliation);
	tcase_add_test(t, found_before_it_was_ordered);
	tcase_add_test(t, lies);
	tcase_add_test(t, contradictions);
	tcase_add_test(t, programs_are_charged);
	tcase_add_test(t, samples_are_charged);
	tcase_add_test(t, programs_are_inherited);
	tcase_add_test(t, whose_buffers_they_are);
	tcase_add_test(t, changes_of_samples_are_charged);
	tcase_add_test(t, nobody_inherits_over_a_limit);
	tcase_add_test(t, changes);
	tcase_add_test(t, death_at_a_change);
	tcase_add_test(t, a_change_that_left_its_event_paused);
	tcase_add_test(t, pauses);
	tcase_add_test(t, pauses_of_a_namespace);
	tcase_add_test(t, second_names);
	tcase_add_test(t, sharing_by_default);
	tcase_add_test(t, sharing_with_strangers_is_asked_for);
	tcase_add_test(t, a_deleted_ring_that_is_mapped_stays_charged);
	tcase_add_test(t, a_limit_reached_a_thousand_times);
	tcase_add_test(t, users_take_turns_in_the_queue);
	tcase_add_test(t, rights_follow_the_configuration);
	tcase_add_test(t, notices);
	tcase_add_test(t, ending_with_orders_under_way);
	tcase_add_test(t, start_with_many);
	suite_add_tcase(s, t);
	return run_suite(s);
}
