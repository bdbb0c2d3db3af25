// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which watchers get which notices; they never block the broker, and dropped notices are counted.
 * CPUs that go offline and online. */
#include "tests/unit/needs.h"
#include "tests/unit/peer-costs.h"

static struct broker b;
static struct client root, team, watcher;

static void setup(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	ck_assert_int_eq(setegid(TEAM), 0);
	client_begin(&b, &team, MEMBER + 10);
	ck_assert_int_eq(setegid(0), 0);
	client_begin(&b, &watcher, 0);
}

static void teardown(void)
{
	client_end(&root);
	client_end(&team);
	client_end(&watcher);
	ck_assert_ptr_null(b.watchers.first);
	broker_end(&b);
}

static int watch(struct client *c, const char *ns)
{
	struct pp_msg_watch_request request = { 0 };

	snprintf(request.ns, sizeof(request.ns), "%s", ns);
	return client_call(c, PP_OP_WATCH, &request);
}

static void expect(struct client *c, enum pp_notice_kind kind, const char *ns, const char *name)
{
	ck_assert_int_eq(client_receive(c), 0);
	ck_assert_uint_eq(c->header.opcode, PP_OP_WATCH | PP_OP_REPLY);
	ck_assert_uint_eq(c->body.notice.kind, kind);
	ck_assert_str_eq(c->body.notice.event.ns, ns);
	ck_assert_str_eq(c->body.notice.event.name, name);
}

START_TEST(what_happens_is_told)
{
	uint32_t serial;

	ck_assert_int_eq(watch(&watcher, ""), 0);
	ck_assert_uint_eq(watcher.body.notice.kind, PP_NOTICE_STARTED);
	serial = watcher.serial;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	expect(&watcher, PP_NOTICE_CREATED, "a", "x");
	ck_assert_uint_eq(watcher.header.serial, serial);
	ck_assert_uint_eq(watcher.body.notice.event.id, 1);
	/* Other requests on the same connection still work. */
	ck_assert_int_eq(client_show(&watcher, "a", "x"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_receive(&watcher), 0);
	ck_assert_uint_eq(watcher.header.serial, serial);
	ck_assert_uint_eq(watcher.body.notice.kind, PP_NOTICE_DELETED);
	ck_assert_str_eq(watcher.body.notice.event.name, "x");
	watchers_tell_cpu(&b.watchers, PP_NOTICE_CPU_OFFLINE, 3);
	expect(&watcher, PP_NOTICE_CPU_OFFLINE, "", "");
	ck_assert_uint_eq(watcher.body.notice.cpu, 3);
}
END_TEST

/* 0640, root's, group team: the third namespace belongs to another user. */
START_TEST(what_may_be_read)
{
	ck_assert_int_eq(registry_configure(&b.lifecycle.registry, "closed", 0, 0, 0600,
					    NAMESPACE_LIVE_GROUP),
			 0);
	ck_assert_int_eq(watch(&team, "closed"), -EACCES);
	ck_assert_int_eq(watch(&team, "no name"), -EINVAL);
	ck_assert_int_eq(watch(&team, ""), 0);
	ck_assert_int_eq(watch(&watcher, "b"), 0); /* which does not exist yet */
	ck_assert_int_eq(client_create(&root, "closed", "x"), 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_create(&root, "b", "x"), 0);
	expect(&team, PP_NOTICE_CREATED, "a", "x");
	expect(&team, PP_NOTICE_CREATED, "b", "x");
	expect(&watcher, PP_NOTICE_CREATED, "b", "x");
	/* The rights at the time of the event count. */
	ck_assert_int_ge(
		registry_configure(&b.lifecycle.registry, "a", 0, TEAM, 0600, NAMESPACE_LIVE_GROUP),
		0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	ck_assert_int_eq(client_delete(&root, "b", "x"), 0);
	expect(&team, PP_NOTICE_DELETED, "b", "x");
	expect(&watcher, PP_NOTICE_DELETED, "b", "x");
	ck_assert(!client_has_reply(&team));
}
END_TEST

START_TEST(as_often_as_it_may)
{
	for (unsigned i = 0; i < WATCHERS_MAX; i++)
		ck_assert_int_eq(watch(&watcher, ""), 0);
	ck_assert_int_eq(watch(&watcher, ""), -EDQUOT);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	for (unsigned i = 0; i < WATCHERS_MAX; i++)
		expect(&watcher, PP_NOTICE_CREATED, "a", "x");
	ck_assert(!client_has_reply(&watcher));
}
END_TEST

/* Each notice was delivered or counted as lost; a watcher that reads gets all of them. */
static uint64_t take(struct client *c, uint64_t *ret_lost)
{
	uint64_t told = 0;

	*ret_lost = 0;
	for (;;) {
		broker_settle(&b);
		if (!client_has_reply(c))
			return told;
		ck_assert_int_eq(client_receive(c), 0);
		if (c->body.notice.kind == PP_NOTICE_LOST)
			*ret_lost += c->body.notice.lost;
		else
			told++;
	}
}

/* A watcher whose user is silenced gets no notices, but their number afterwards. */
START_TEST(silenced)
{
	struct fair_queue_member *turn = turn_of(&b, MEMBER + 10);
	uint64_t told, lost, all = 0;

	ck_assert_int_eq(watch(&team, ""), 0);
	ck_assert_int_eq(watch(&watcher, ""), 0);
	fair_queue_owe(b.peers.queue, turn, 20 * 1000000);
	for (unsigned i = 0; i < 100; i++)
		watchers_tell_cpu(&b.watchers, PP_NOTICE_CPU_OFFLINE, 3);
	if (fair_queue_is_silenced(turn))
		ck_assert(!client_has_reply(&team));
	take(&watcher, &lost);
	while (all < 100) {
		broker_until(&b, client_has_reply(&team));
		told = take(&team, &lost);
		all += told + lost;
	}
	ck_assert_uint_eq(all, 100);
}
END_TEST

/* Who has asked for too much waits with further requests, and is told what it watches. */
START_TEST(in_debt_for_requests)
{
	struct fair_queue_member *turn = turn_of(&b, MEMBER + 10);

	ck_assert_int_eq(watch(&team, ""), 0);
	ck_assert(fair_queue_ask(b.peers.queue, turn, 3600 * 1000000000ULL));
	ck_assert(!fair_queue_is_silenced(turn));
	watchers_tell_cpu(&b.watchers, PP_NOTICE_CPU_OFFLINE, 3);
	ck_assert(client_has_reply(&team));
	expect(&team, PP_NOTICE_CPU_OFFLINE, "", "");
	/* What the calls cost is owed beside it, and silences for as long. */
	ck_assert(fair_queue_owe(b.peers.queue, turn, 1000000));
	ck_assert(fair_queue_is_silenced(turn));
	watchers_tell_cpu(&b.watchers, PP_NOTICE_CPU_OFFLINE, 3);
	ck_assert(!client_has_reply(&team));
	broker_until(&b, client_has_reply(&team));
	ck_assert(!fair_queue_is_silenced(turn));
	ck_assert(fair_queue_in_debt(turn));
}
END_TEST

/* Each of many notices is cheap, and all together are expensive. */
START_TEST(as_much_as_it_may_cost)
{
	struct fair_queue_member *turn = turn_of(&b, MEMBER + 10);

	ck_assert(!fair_queue_spend(b.peers.queue, turn, 1000));
	ck_assert(!fair_queue_in_debt(turn));
	for (unsigned i = 0; i < 1000 && !fair_queue_in_debt(turn); i++)
		fair_queue_spend(b.peers.queue, turn, FAIR_QUEUE_CREDIT_NSEC - 1);
	ck_assert(fair_queue_in_debt(turn));
	for (unsigned i = 0; i < 1000; i++)
		ck_assert(!fair_queue_spend(b.peers.queue, turn_of(&b, 0), FAIR_QUEUE_CREDIT_NSEC));
	ck_assert(!fair_queue_in_debt(turn_of(&b, 0)));
}
END_TEST

/* So is each of many requests, and a burst of them is no harm. */
START_TEST(as_much_as_may_be_asked)
{
	struct fair_queue_member *turn = turn_of(&b, MEMBER + 10);

	for (unsigned i = 0; i < 49; i++)
		ck_assert(!fair_queue_ask(b.peers.queue, turn, FAIR_QUEUE_ASK_CREDIT_NSEC / 50));
	ck_assert(!fair_queue_in_debt(turn));
	ck_assert(fair_queue_ask(b.peers.queue, turn, FAIR_QUEUE_ASK_CREDIT_NSEC));
	ck_assert(fair_queue_in_debt(turn));
	ck_assert(!fair_queue_ask(b.peers.queue, turn_of(&b, 0), 2 * FAIR_QUEUE_ASK_CREDIT_NSEC));
	ck_assert(!fair_queue_in_debt(turn_of(&b, 0)));
}
END_TEST

static uint64_t clock_of_costs(void)
{
	static uint64_t now;

	return now += FAIR_QUEUE_CREDIT_NSEC;
}

/* The user of a watcher pays for a notice. */
START_TEST(notices_are_paid_for)
{
	struct fair_queue_member *turn = turn_of(&b, MEMBER + 10);

	ck_assert_int_eq(watch(&team, ""), 0);
	b.peers.clock = clock_of_costs;
	watchers_tell_cpu(&b.watchers, PP_NOTICE_CPU_OFFLINE, 3);
	ck_assert(fair_queue_in_debt(turn));
}
END_TEST

static uint64_t time_of_requests;
static void (*handle)(void *userdata, struct peer *peer, const struct pp_header *header,
		      const union pp_body *body);

static uint64_t clock_of_requests(void)
{
	return time_of_requests;
}

static void handle_slowly(void *userdata, struct peer *peer, const struct pp_header *header,
			  const union pp_body *body)
{
	handle(userdata, peer, header, body);
	time_of_requests += FAIR_QUEUE_ASK_CREDIT_NSEC;
}

/* Who asks pays for the answer. */
START_TEST(requests_are_paid_for)
{
	b.peers.clock = clock_of_requests;
	handle = b.peers.request;
	b.peers.request = handle_slowly;
	ck_assert_int_eq(client_list(&root, "", 0), 0);
	ck_assert(!fair_queue_in_debt(turn_of(&b, 0)));
	ck_assert_int_eq(client_list(&team, "", 0), 0);
	ck_assert(fair_queue_in_debt(turn_of(&b, MEMBER + 10)));
}
END_TEST

START_TEST(who_does_not_read)
{
	struct client slow;
	uint64_t told, lost;

	client_begin(&b, &slow, 0);
	ck_assert_int_eq(watch(&slow, ""), 0);
	ck_assert_int_eq(watch(&slow, "a"), 0);
	ck_assert_int_eq(watch(&watcher, ""), 0);
	for (unsigned i = 0; i < 500; i++) {
		ck_assert_int_eq(client_create(&root, "a", "x"), 0);
		expect(&watcher, PP_NOTICE_CREATED, "a", "x");
		ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
		expect(&watcher, PP_NOTICE_DELETED, "a", "x");
	}
	told = take(&slow, &lost);
	ck_assert_uint_gt(told, 0);
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_eq(told + lost, 2 * 2 * 500);
	/* From then on nothing is lost. */
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_uint_eq(take(&slow, &lost), 2);
	ck_assert_uint_eq(lost, 0);
	expect(&watcher, PP_NOTICE_CREATED, "a", "x");
	client_end(&slow);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("watchers");
	TCase *t = tcase_create("all");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_happens_is_told);
	tcase_add_test(t, what_may_be_read);
	tcase_add_test(t, as_often_as_it_may);
	tcase_add_test(t, silenced);
	tcase_add_test(t, in_debt_for_requests);
	tcase_add_test(t, as_much_as_it_may_cost);
	tcase_add_test(t, as_much_as_may_be_asked);
	tcase_add_test(t, requests_are_paid_for);
	tcase_add_test(t, notices_are_paid_for);
	tcase_add_test(t, who_does_not_read);
	suite_add_tcase(s, t);
	return run_suite(s);
}
