// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handing perf events over and taking events back, over real connections: at each moment one side owns them,
 * whoever leaves, dies or lies. */
#include <fcntl.h>

#include "daemon/broker/stop.h"
#include "tests/unit/peer-costs.h"

static struct broker b;
static struct client root, member;

static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	client_begin(&b, &member, MEMBER);
}

static void teardown(void)
{
	client_end(&root);
	client_end(&member);
	ck_assert_uint_eq(b.engine.n_adoptions, 0);
	ck_assert_ptr_null(b.service.adoptions);
	broker_end(&b);
}

static struct pp_msg_create_request request_for(const char *name, const char *event)
{
	struct pp_msg_create_request request = { .count = 1 };

	snprintf(request.ns, sizeof(request.ns), "a");
	snprintf(request.name, sizeof(request.name), "%s", name);
	snprintf(request.selections[0].event, sizeof(request.selections[0].event), "%s", event);
	return request;
}

static int adopt(struct client *c, const char *name)
{
	struct pp_msg_create_request request = request_for(name, "cpu-clock");

	return client_call(c, PP_OP_ADOPT, &request);
}

static int begin(struct client *c, const char *name, uint64_t *ret)
{
	int r = adopt(c, name);

	if (r < 0)
		return r;
	ck_assert_uint_eq(c->fds.n, 1);
	*ret = c->body.adopt_reply.adoption;
	return 0;
}

static struct pp_msg_attach_request links(uint64_t adoption, uint32_t n, bool more)
{
	struct pp_msg_attach_request request = { .adoption = adoption, .more = more, .count = n };

	for (uint32_t i = 0; i < n; i++)
		request.links[i].id = i + 1;
	return request;
}

static int attach(struct client *c, uint64_t adoption, uint32_t n, bool more)
{
	struct pp_msg_attach_request request = links(adoption, n, more);

	return client_call(c, PP_OP_ATTACH, &request);
}

static int claim(struct client *c, const char *name, uint32_t first)
{
	struct pp_msg_claim_request request = {
		.which = client_name("a", name),
		.first = first,
	};

	return client_call(c, PP_OP_CLAIM, &request);
}

static struct pp_msg_claim_request end_of_claim(uint64_t id)
{
	return (struct pp_msg_claim_request){ .which.id = id, .done = 1, .set = 1 };
}

static int end_claim(struct client *c, uint64_t id)
{
	struct pp_msg_claim_request request = end_of_claim(id);

	return client_call(c, PP_OP_CLAIM, &request);
}

static uint64_t charged(void)
{
	return b.quota.sum.used[QUOTA_MEMORY];
}

/* ── handing over ───────────────────────────────────────────────────────────────────────── */

START_TEST(handed_over)
{
	uint64_t id;

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	/* The name is taken, and nobody sees an event. */
	ck_assert_int_eq(client_create(&root, "a", "x"), -EEXIST);
	ck_assert_int_eq(client_show(&root, "a", "x"), -EBUSY);
	ck_assert_int_eq(client_list(&root, "", 0), 0);
	ck_assert_uint_eq(root.body.list_reply.count, 0);

	ck_assert_int_eq(attach(&root, id, PP_LINKS_MAX, true), 0);
	ck_assert_uint_eq(root.body.event.id, 0);
	ck_assert_uint_eq(b.engine.adoptions[0].links, PP_LINKS_MAX);
	ck_assert_int_eq(attach(&root, id, 3, false), 0);
	ck_assert_uint_eq(root.body.event.id, id);
	ck_assert(root.body.event.flags & PP_EVENT_ADOPTED);
	ck_assert_uint_eq(root.body.event.state, PP_EVENT_RUNNING);
	ck_assert_uint_eq(b.notices[PP_NOTICE_CREATED], 1);
	ck_assert_int_eq(attach(&root, id, 1, false), -ENOENT);

	/* It does not go with who handed it over, and is nobody's twin. */
	client_end(&root);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	ck_assert_uint_eq(b.engine.given_up, 0);
	b.config.share = true;
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_uint_eq(root.body.event.shares, 0);
}
END_TEST

/* By its peer, which leaves or says so, whatever it has sent. */
START_TEST(given_up)
{
	uint64_t id, before = charged();
	struct pp_msg_attach_request more;

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	ck_assert_int_eq(attach(&root, id, 0, false), 0);
	broker_until(&b, b.engine.given_up == 1);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	more = links(id, 1, true);
	fake_wait(&b.engine, _i > 0);
	if (_i == 1)
		client_send(&root, PP_OP_ATTACH, &more);
	broker_settle(&b);
	client_end(&root);
	fake_wait(&b.engine, false);
	broker_until(&b, b.engine.given_up == 2 && charged() == before);
	client_begin(&b, &root, 0);
}
END_TEST

/* A peer that has hung up, and left a reply unread, is still there. */
START_TEST(hung_up)
{
	struct pp_msg_create_request other = request_for("y", "cpu-clock");
	struct pp_msg_attach_request more;
	uint64_t id;

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	client_send(&root, PP_OP_ADOPT, &other);
	broker_settle(&b);
	more = links(id, 1, true);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_ATTACH, &more);
	broker_settle(&b);
	ck_assert_int_eq(shutdown(root.fd, SHUT_RDWR), 0);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	broker_until(&b, b.engine.given_up == 2 && charged() == 0);
}
END_TEST

/* Who has asked for too much meanwhile waits for his next turn, and gets what was made for him. */
START_TEST(in_debt)
{
	struct pp_msg_create_request request = request_for("x", "cpu-clock");

	b.config.makers = POLICY_ALL;
	strcpy(request.ns, "own");
	fake_wait(&b.engine, true);
	client_send(&member, PP_OP_ADOPT, &request);
	broker_settle(&b);
	ck_assert(fair_queue_ask(b.peers.queue, turn_of(&b, MEMBER), 3600 * 1000000000ULL));
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&member), 0);
	ck_assert_uint_eq(member.fds.n, 1);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER)));
	client_send(&member, PP_OP_PING, NULL);
	broker_settle(&b);
	ck_assert(!client_has_reply(&member));
	client_end(&member);
	broker_until(&b, b.engine.given_up == 1);
	client_begin(&b, &member, MEMBER);
}
END_TEST

/* Its creator pays for its end, and for its memory until then. */
START_TEST(charged_to_the_end)
{
	struct pp_msg_create_request request = request_for("x", "cpu-clock");
	uint64_t before, rings, with;

	b.config.makers = POLICY_ALL;
	strcpy(request.ns, "own");
	ck_assert_int_eq(client_call(&member, PP_OP_CREATE, &request), 0);
	before = rings = charged();
	strcpy(request.name, "y");
	ck_assert_int_eq(client_call(&member, PP_OP_ADOPT, &request), 0);
	with = charged();
	/* The perf events that may come are charged as the rings are. */
	ck_assert_uint_ge(with, before + rings + 64 * 16384);
	fake_wait(&b.engine, true);
	client_end(&member);
	ck_assert_uint_eq(charged(), with);
	ck_assert_uint_eq(orders_first(b.lifecycle.orders)->uid, MEMBER);
	fake_wait(&b.engine, false);
	broker_until(&b, charged() == before);
	client_begin(&b, &member, MEMBER);

	/* Nor is it left behind with an engine that dies. */
	ck_assert_int_eq(client_call(&member, PP_OP_ADOPT, &request), 0);
	fake_wait(&b.engine, true);
	client_end(&member);
	fake_wait(&b.engine, false);
	b.engine.mood = FAKE_DIES_BEFORE;
	b.engine.moods = 1;
	broker_until(&b, charged() == before);
	client_begin(&b, &member, MEMBER);
}
END_TEST

/* Somebody with the right to delete, whatever its peer does. */
START_TEST(ended_by_another)
{
	struct pp_msg_attach_request last;
	struct client other;
	uint64_t id;

	client_begin(&b, &other, 0);
	ck_assert_int_eq(begin(&root, "x", &id), 0);
	ck_assert_int_eq(client_delete(&member, "a", "x"), -EACCES);
	ck_assert_int_eq(client_delete(&other, "a", "x"), 0);
	ck_assert_uint_eq(b.engine.given_up, 1);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], 0);
	ck_assert_int_eq(attach(&root, id, 1, false), -ENOENT);
	ck_assert_int_eq(begin(&other, "x", &id), 0);

	/* Not in the middle of an order. */
	last = links(id, 1, false);
	fake_wait(&b.engine, true);
	client_send(&other, PP_OP_ATTACH, &last);
	ck_assert_int_eq(client_delete(&root, "a", "x"), -EBUSY);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&other), 0);
	client_end(&other);
}
END_TEST

/* The peer is gone before the program is there. */
START_TEST(left_early)
{
	struct pp_msg_create_request request = request_for("x", "cpu-clock");

	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_ADOPT, &request);
	broker_settle(&b);
	client_end(&root);
	fake_wait(&b.engine, false);
	broker_until(&b, b.engine.given_up == 1);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
}
END_TEST

/* Who has sent the last links, and is gone, has handed the event over. */
START_TEST(left_at_last)
{
	struct pp_msg_attach_request last;
	uint64_t id;

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	last = links(id, 1, false);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_ATTACH, &last);
	broker_settle(&b);
	client_end(&root);
	fake_wait(&b.engine, false);
	client_begin(&b, &root, 0);
	broker_until(&b, client_show(&root, "a", "x") == 0);
	ck_assert_uint_eq(b.engine.given_up, 0);
}
END_TEST

static bool has_stopped;

static void on_stopped(void *userdata _unused_)
{
	has_stopped = true;
}

/* Ends all events; *ret_log: what the log says. */
static void stop(char *ret_log, size_t size)
{
	struct stop s = { .lifecycle = &b.lifecycle, .ended = on_stopped };
	int log = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), err = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert_int_ge(log, 0);
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	has_stopped = false;
	ck_assert_int_eq(stop_begin(&s, b.loop), 0);
	while (!has_stopped) {
		broker_settle(&b);
		stop_continue(&s);
	}
	stop_done(&s);
	ck_assert_int_ge(dup2(err, STDERR_FILENO), 0);
	close(err);
	n = pread(log, ret_log, size - 1, 0);
	ck_assert_int_ge(n, 0);
	ret_log[n] = '\0';
	close(log);
}

/* A daemon that ends all events does not say of an adoption under way that it records. */
START_TEST(the_daemon_ends)
{
	char said[1024];
	uint64_t id;

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(begin(&root, "y", &id), 0);
	stop(said, sizeof(said));
	ck_assert_msg(strstr(said, "Ended all events: 1."), "%s", said);
	ck_assert_msg(!strstr(said, "a/y"), "%s", said);
}
END_TEST

START_TEST(the_engine_dies)
{
	static const enum fake_mood moods[] = { FAKE_DIES_BEFORE, FAKE_DIES_AFTER };
	uint64_t id;

	/* While nobody waits for it. */
	ck_assert_int_eq(begin(&root, "x", &id), 0);
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));
	ck_assert_int_eq(attach(&root, id, 1, false), -ENOENT);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	b.engine.mood = moods[_i];
	b.engine.moods = 1;
	b.engine.moody = PP_ORDER_ATTACH;
	/* It has made the event, or has not. */
	ck_assert_int_eq(attach(&root, id, 1, false), _i ? 0 : -EAGAIN);
	ck_assert_int_eq(client_show(&root, "a", "x"), _i ? 0 : -ENOENT);

	b.engine.moods = 1;
	b.engine.moody = PP_ORDER_ADOPT;
	b.engine.mood = FAKE_DIES_BEFORE;
	ck_assert_int_eq(begin(&root, "y", &id), 0);
	ck_assert_int_eq(attach(&root, id, 1, false), 0);
}
END_TEST

START_TEST(the_engine_fails_or_lies)
{
	uint64_t id, before = charged();

	b.engine.mood = FAKE_FAILS;
	b.engine.moods = 1;
	ck_assert_int_eq(begin(&root, "x", &id), -E2BIG);
	ck_assert_int_eq(begin(&root, "x", &id), 0);
	b.engine.moods = 1;
	ck_assert_int_eq(attach(&root, id, 1, false), -E2BIG);
	ck_assert_int_eq(attach(&root, id, 1, false), -ENOENT);
	ck_assert_uint_eq(charged(), before);
	fake_hang_up(&b.engine);
	broker_until(&b, !orders_is_up(b.lifecycle.orders));
	broker_until(&b, orders_is_up(b.lifecycle.orders));

	/* No program comes with the answer: the connection is of no use. */
	b.engine.mood = FAKE_LIES_SIZE;
	b.engine.moods = 1;
	ck_assert_int_eq(begin(&root, "x", &id), 0);
	ck_assert_uint_eq(b.engine.enumerated, 3);
	ck_assert_int_eq(attach(&root, id, 1, false), 0);
}
END_TEST

START_TEST(refused)
{
	struct pp_msg_create_request request = request_for("x", "cpu-clock,page-faults");
	uint64_t id, other;

	ck_assert_int_eq(client_call(&root, PP_OP_ADOPT, &request), -EINVAL);
	request = request_for("x", "kprobe:schedule");
	ck_assert_int_eq(client_call(&root, PP_OP_ADOPT, &request), -EOPNOTSUPP);
	for (uint32_t flag = PP_EVENT_SHARE; flag;
	     flag = flag == PP_EVENT_SHARE ? PP_EVENT_BOOT : 0) {
		request = request_for("x", "cpu-clock");
		request.flags = flag;
		ck_assert_int_eq(client_call(&root, PP_OP_ADOPT, &request), -EINVAL);
	}
	ck_assert_int_eq(adopt(&member, "x"), -EACCES);

	/* Users have only what is sampled. */
	b.config.makers = POLICY_ALL;
	request = request_for("x", "sched:sched_switch");
	strcpy(request.ns, "own");
	ck_assert_int_eq(client_call(&member, PP_OP_ADOPT, &request), -EACCES);
	request = request_for("x", "cpu-clock");
	strcpy(request.ns, "own");
	ck_assert_int_eq(client_call(&member, PP_OP_ADOPT, &request), 0);
	ck_assert_int_eq(attach(&member, member.body.adopt_reply.adoption, 0, false), 0);

	/* Another's adoption, and two requests about one at a time. */
	ck_assert_int_eq(begin(&root, "x", &id), 0);
	ck_assert_int_eq(attach(&member, id, 1, false), -ENOENT);
	ck_assert_int_eq(attach(&root, id + 1, 1, false), -ENOENT);
	for (unsigned i = 1; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "x%u", i);
		ck_assert_int_eq(begin(&root, name, &other), 0);
	}
	ck_assert_int_eq(adopt(&root, "y"), -EBUSY);
	ck_assert_int_eq(attach(&root, other, 0, false), 0);
	ck_assert_int_eq(adopt(&root, "y"), 0);
}
END_TEST

static void expect_too_many(void)
{
	struct pp_msg_create_request request = request_for("y", "cpu-clock");

	client_send(&root, PP_OP_ADOPT, &request);
	broker_settle(&b);
	ck_assert(client_has_reply(&root));
	ck_assert_int_eq(client_receive(&root), -EBUSY);
}

/* Also those that the engine has not answered, and has not ended. */
START_TEST(all_count)
{
	struct pp_msg_create_request request;

	fake_wait(&b.engine, true);
	for (unsigned i = 0; i < 8; i++) {
		char name[8];

		snprintf(name, sizeof(name), "x%u", i);
		request = request_for(name, "cpu-clock");
		client_send(&root, PP_OP_ADOPT, &request);
	}
	expect_too_many();
	fake_wait(&b.engine, false);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(client_receive(&root), 0);
	fake_wait(&b.engine, true);
	client_end(&root);
	client_begin(&b, &root, 0);
	expect_too_many();
	fake_wait(&b.engine, false);
	broker_until(&b, b.engine.given_up == 8);
}
END_TEST

START_TEST(two_at_a_time)
{
	struct pp_msg_attach_request last;
	uint64_t id;

	ck_assert_int_eq(begin(&root, "x", &id), 0);
	last = links(id, 1, false);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_ATTACH, &last);
	client_send(&root, PP_OP_ATTACH, &last);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
}
END_TEST

/* ── taking back ────────────────────────────────────────────────────────────────────────── */

START_TEST(taken_back)
{
	b.engine.parts = PP_FDS_MAX + 5;
	b.engine.holds = true;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	ck_assert_uint_eq(root.fds.n, PP_FDS_MAX);
	ck_assert_uint_eq(root.body.claim_reply.total, PP_FDS_MAX + 5);
	ck_assert_uint_eq(root.body.claim_reply.rings, 2);
	ck_assert_int_eq(claim(&root, "x", PP_FDS_MAX), 0);
	ck_assert_uint_eq(root.fds.n, 5);
	/* Until it says so the event is ours. */
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);

	ck_assert_int_eq(end_claim(&root, 1), 0);
	ck_assert_uint_eq(b.engine.given_back, 1);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
	ck_assert_uint_eq(b.notices[PP_NOTICE_DELETED], 1);
	/* Its rings are still charged. */
	ck_assert_uint_gt(charged(), 0);
}
END_TEST

START_TEST(who_dies_during_a_claim)
{
	b.engine.parts = 5;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	client_end(&root);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), 0);
	/* Another connection has not got its parts. */
	ck_assert_int_eq(end_claim(&root, 1), -EAGAIN);
	ck_assert_int_eq(claim(&root, "x", PP_FDS_MAX), -EAGAIN);
	ck_assert_int_eq(claim(&root, "x", 0), 0);

	b.engine.mood = _i ? FAKE_DIES_AFTER : FAKE_DIES_BEFORE;
	b.engine.moods = 1;
	b.engine.moody = PP_ORDER_DELETE;
	ck_assert_int_eq(end_claim(&root, 1), 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
	ck_assert_uint_eq(b.engine.deleted, 1);
}
END_TEST

/* The engine may have given the event back, or not have got the order. */
START_TEST(claimed_without_an_engine)
{
	struct pp_msg_claim_request end = end_of_claim(1);

	b.engine.parts = 5;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	fake_wait(&b.engine, true);
	if (_i == 0)
		client_send(&root, PP_OP_CLAIM, &end);
	broker_settle(&b);
	fake_stop(&b.engine);
	broker_settle(&b);
	if (_i == 1)
		client_send(&root, PP_OP_CLAIM, &end);
	broker_settle(&b);
	orders_abandon(b.lifecycle.orders);
	ck_assert_int_eq(client_receive(&root), _i == 0 ? -EINPROGRESS : -EAGAIN);
	fake_wait(&b.engine, false);
	fake_start(&b.engine);
	broker_until(&b, orders_is_up(b.lifecycle.orders));
}
END_TEST

/* What was handed out may no longer be the event's, after any order that is about it; or it is another's claim. */
START_TEST(changed_during_a_claim)
{
	const struct pp_msg_claim_request end = end_of_claim(1);
	const struct pp_msg_pause_request change = {
		.which = client_name("a", "x"),
		.pause = 1,
	};
	struct client other;

	b.engine.parts = PP_FDS_MAX + 5;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);
	ck_assert_int_eq(claim(&root, "x", PP_FDS_MAX), -EAGAIN);
	ck_assert_int_eq(end_claim(&root, 1), -EAGAIN);

	client_begin(&b, &other, 0);
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	ck_assert_int_eq(claim(&other, "x", 0), 0);
	ck_assert_int_eq(end_claim(&root, 1), -EAGAIN);
	client_end(&other);

	/* An order that has not been carried out counts, too. */
	ck_assert_int_eq(claim(&root, "x", 0), 0);
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_PAUSE, &change);
	client_send(&root, PP_OP_CLAIM, &end);
	ck_assert_int_eq(client_receive(&root), -EBUSY);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(b.engine.given_back, 0);
}
END_TEST

START_TEST(claims_refused)
{
	struct pp_msg_claim_request old;

	b.engine.parts = 5;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(claim(&member, "x", 0), -EACCES);
	ck_assert_int_eq(claim(&root, "none", 0), -ENOENT);
	old = end_of_claim(1);
	old.set = 7;
	ck_assert_int_eq(client_call(&root, PP_OP_CLAIM, &old), -EAGAIN);
	/* Another event can have got the name. */
	old = end_of_claim(0);
	old.which = client_name("a", "x");
	ck_assert_int_eq(client_call(&root, PP_OP_CLAIM, &old), -EINVAL);
	ck_assert_int_eq(end_claim(&root, 7), -ENOENT);

	/* Nobody could resume it. */
	ck_assert_int_eq(client_pause(&root, "a", "x", true), 0);
	ck_assert_int_eq(claim(&root, "x", 0), -EBUSY);
	ck_assert_int_eq(end_claim(&root, 1), -EBUSY);
	ck_assert_int_eq(client_pause(&root, "a", "x", false), 0);

	ck_assert_int_eq(client_trigger(&root, "a", "fires", "x"), 0);
	ck_assert_int_eq(end_claim(&root, 2), -EOPNOTSUPP);
	broker_until(&b, b.engine.events[0].now & PP_NOW_ARMED);
	broker_settle(&b);
	ck_assert_int_eq(end_claim(&root, 1), -EBUSY);
	ck_assert_int_eq(client_delete(&root, "a", "fires"), 0);
	ck_assert_uint_eq(b.engine.given_back, 0);
}
END_TEST

/* ── what there is ──────────────────────────────────────────────────────────────────────── */

START_TEST(descriptors)
{
	struct pp_msg_name which = client_name("a", "x");

	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_DESCRIPTORS, &which), 0);
	ck_assert_uint_eq(root.fds.n, 1);
	ck_assert_int_eq(client_call(&member, PP_OP_DESCRIPTORS, &which), -EACCES);
	which = client_name("a", "none");
	ck_assert_int_eq(client_call(&root, PP_OP_DESCRIPTORS, &which), -ENOENT);

	/* The event goes while somebody asks. */
	which = client_name("a", "x");
	fake_wait(&b.engine, true);
	client_send(&root, PP_OP_DESCRIPTORS, &which);
	client_send(&root, PP_OP_DELETE, &which);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_show(&root, "a", "x"), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("adopt");
	TCase *t = tcase_create("adopt");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, handed_over);
	tcase_add_loop_test(t, given_up, 0, 3);
	tcase_add_test(t, hung_up);
	tcase_add_test(t, in_debt);
	tcase_add_test(t, charged_to_the_end);
	tcase_add_test(t, ended_by_another);
	tcase_add_test(t, left_early);
	tcase_add_test(t, left_at_last);
	tcase_add_test(t, the_daemon_ends);
	tcase_add_loop_test(t, the_engine_dies, 0, 2);
	tcase_add_test(t, the_engine_fails_or_lies);
	tcase_add_test(t, refused);
	tcase_add_test(t, all_count);
	tcase_add_test(t, two_at_a_time);
	tcase_add_test(t, taken_back);
	tcase_add_loop_test(t, who_dies_during_a_claim, 0, 2);
	tcase_add_loop_test(t, claimed_without_an_engine, 0, 2);
	tcase_add_test(t, changed_during_a_claim);
	tcase_add_test(t, claims_refused);
	tcase_add_test(t, descriptors);
	suite_add_tcase(s, t);
	return run_suite(s);
}
