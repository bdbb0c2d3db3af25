// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The keeper gets what it needs, whatever dies, and users with the right to sideband get it and are
 * charged for it; others do not. CPUs 0 to 3 are online; the kernel keeps no account of them.
 */
#include "fake-keeper.h"
#include "needs.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LIMIT (8ULL << 20)
#define PAGE 4096ULL

static struct broker b;
static struct fake_keeper k;
static struct client root, team, member;
static const struct pp_msg_sideband_request everything;
static const struct pp_msg_sideband_request numbers = { .flags = PP_SIDEBAND_STATUS };

static void setup(void)
{
	broker_start(&b);
	ck_assert_int_eq(
		registry_configure(&b.lifecycle.registry, "a", TEAM, 0, 0600, NAMESPACE_LIVE_OWNER),
		0);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, TEAM);
	client_begin(&b, &member, MEMBER);
	keeper_start(&k, &b);
	k.size = 3 * PAGE;
	sideband_configure(&b.sideband, true, LIMIT);
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

/* One event, and everything that the keeper needs for it. */
static void begin(void)
{
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	broker_until(&b, k.status.tasks);
	broker_settle(&b);
}

static unsigned rings(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(k.generation); i++)
		n += k.generation[i] > 0;
	return n;
}

static unsigned open_descriptors(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	return n;
}

static uint64_t charged(uint32_t uid)
{
	const struct quota_account *user;

	broker_settle(&b);
	user = quota_user(&b.quota, uid);
	return user ? user->used[QUOTA_COPIES] : 0;
}

/* ── what the keeper is told ────────────────────────────────────────────────────────────── */

static uint32_t why(void)
{
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &numbers), 0);
	return root.body.sideband_reply.why;
}

/* Since when and why the keeper runs, or why it does not. */
START_TEST(reasons)
{
	broker_settle(&b);
	ck_assert_uint_eq(why(), PP_SIDEBAND_NOTHING);
	begin();
	ck_assert_uint_eq(why(), PP_SIDEBAND_FIRST);
	keeper_forget(&k);
	keeper_hang_up(&k);
	broker_until(&b, k.status.tasks);
	ck_assert_uint_eq(why(), PP_SIDEBAND_GONE);
	sideband_configure(&b.sideband, false, LIMIT);
	broker_until(&b, k.fd < 0);
	ck_assert_uint_eq(why(), PP_SIDEBAND_OFF);
	sideband_configure(&b.sideband, true, LIMIT);
	broker_until(&b, k.status.tasks);
	ck_assert_uint_eq(why(), PP_SIDEBAND_FIRST);
	keeper_stop(&k);
	broker_until(&b, b.sideband.attempts >= 5);
	ck_assert_uint_eq(why(), PP_SIDEBAND_AWAY);
	keeper_start(&k, &b);
	broker_until(&b, k.status.tasks);
}
END_TEST

/* With the first event the keeper gets everything once; no descriptor stays open here. */
START_TEST(first_event)
{
	unsigned before;

	broker_settle(&b);
	before = open_descriptors();
	begin();
	ck_assert_uint_eq(k.connections, 1);
	ck_assert_uint_eq(k.asked[PP_KEEP_HELLO], 1);
	ck_assert_uint_eq(k.asked[PP_KEEP_LIMIT], 1);
	ck_assert_uint_eq(k.status.max_memory, LIMIT);
	ck_assert_uint_eq(k.asked[PP_KEEP_CPUS_HELD], 1);
	ck_assert_uint_eq(k.asked[PP_KEEP_RINGS], 1);
	ck_assert_uint_eq(k.asked[PP_KEEP_TASKS], 1);
	ck_assert_uint_eq(b.engine.sideband, 2);
	ck_assert_uint_eq(rings(), 4);
	/* Both ends of one connection. */
	ck_assert_uint_eq(open_descriptors(), before + 2);

	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.sideband, 2);
	ck_assert_uint_eq(k.asked[PP_KEEP_DROP], 0);
}
END_TEST

/* With the last event everything goes, and the connection. */
START_TEST(last_event)
{
	begin();
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	broker_until(&b, k.asked[PP_KEEP_DROP] == 1 && k.fd < 0);
	ck_assert_uint_eq(k.status.keeping, 0);
	broker_settle(&b);
	ck_assert_uint_eq(k.connections, 1);
	begin();
	ck_assert_uint_eq(k.connections, 2);
	ck_assert_uint_eq(k.asked[PP_KEEP_RINGS], 2);
}
END_TEST

/* Data from an earlier broker, without an event, goes as well. */
START_TEST(left_over)
{
	keeper_stop(&k);
	teardown();
	broker_begin(&b);
	keeper_start(&k, &b);
	k.generation[0] = 1;
	k.status.keeping = k.status.tasks = 1;
	sideband_configure(&b.sideband, true, LIMIT);
	ck_assert_int_ge(orders_start(b.lifecycle.orders), 0);
	broker_until(&b, k.asked[PP_KEEP_DROP] == 1 && k.fd < 0);
	ck_assert_uint_eq(k.status.keeping, 0);
	client_begin(&b, &root, 0);
	client_begin(&b, &team, TEAM);
	client_begin(&b, &member, MEMBER);
}
END_TEST

/* A new connection to a keeper that has not forgotten: the broker adds only what is missing. */
START_TEST(another_connection)
{
	begin();
	keeper_hang_up(&k);
	broker_until(&b, k.connections == 2 && k.asked[PP_KEEP_CPUS_HELD] == 6);
	broker_settle(&b);
	ck_assert_uint_eq(b.engine.sideband, 2);
	/* One CPU was offline meanwhile, and one has no ring. */
	k.generation[2] = 8;
	k.generation[3] = 0;
	keeper_hang_up(&k);
	broker_until(&b, k.asked[PP_KEEP_RINGS] == 2);
	ck_assert_uint_eq(k.last_fds, 2);
	ck_assert_uint_eq(k.last.cpus[0].cpu, 2);
	ck_assert_uint_eq(k.last.cpus[1].cpu, 3);
	ck_assert_uint_eq(k.generation[2], 1);
}
END_TEST

START_TEST(keeper_dies)
{
	static const enum pp_keep_type at[] = { PP_KEEP_HELLO, PP_KEEP_LIMIT, PP_KEEP_CPUS_HELD,
						PP_KEEP_RINGS, PP_KEEP_TASKS };

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		k.dies_at = at[i];
		keeper_forget(&k);
		keeper_hang_up(&k);
		broker_until(&b, k.dies_at == 0 && k.status.tasks);
		ck_assert_uint_eq(rings(), 4);
	}
}
END_TEST

/* A process in the keeper's place: it only waits to be killed. */
static pid_t fork_keeper(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void check_killed(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* As if so much time had passed. */
static void lose_patience(void)
{
	ck_assert_int_ge(sd_event_source_set_time_relative(b.sideband.keeper.patience, 0), 0);
}

/* The keeper exists and does not answer: a successor replaces it, and gets everything. */
START_TEST(keeper_is_stuck)
{
	pid_t pid = fork_keeper();

	k.pid = (uint32_t)pid;
	begin();
	keeper_hold(&k, true);
	sideband_configure(&b.sideband, true, 2 * LIMIT);
	broker_until(&b, b.sideband.keeper.n_asked > 0);
	lose_patience();
	broker_until(&b, b.sideband.keeper.stuck);
	check_killed(pid);
	keeper_hang_up(&k);
	keeper_forget(&k);
	k.pid = FAKE_KEEPER_PID;
	ck_assert_int_eq(sideband_why(&b.sideband, false), PP_SIDEBAND_STUCK);
	keeper_hold(&k, false);
	broker_until(&b, k.status.tasks);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &numbers), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 1);
	ck_assert_uint_eq(root.body.sideband_reply.why, PP_SIDEBAND_STUCK);
	ck_assert_uint_eq(k.connections, 2);
	ck_assert_uint_eq(rings(), 4);
	ck_assert(!b.sideband.keeper.stuck);
}
END_TEST

/* To a new connection: the keeper may be busy for a while. */
START_TEST(keeper_does_not_greet)
{
	pid_t pid = fork_keeper();

	k.pid = (uint32_t)pid;
	begin();
	keeper_hold(&k, true);
	keeper_hang_up(&k);
	for (unsigned i = 2; i < 4; i++) {
		broker_until(&b, k.connections == i);
		lose_patience();
		broker_until(&b, b.sideband.keeper.mute);
		broker_until(&b, !keeper_is_connected(&b.sideband.keeper));
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	}
	broker_until(&b, k.connections == 4);
	b.sideband.keeper.silent_since -= 30 * 1000000ULL;
	lose_patience();
	broker_until(&b, b.sideband.keeper.stuck);
	check_killed(pid);
	keeper_hang_up(&k);
	keeper_forget(&k);
	keeper_hold(&k, false);
	broker_until(&b, k.status.tasks);
}
END_TEST

START_TEST(keeper_of_another_version)
{
	k.abi++;
	k.generation[0] = 1;
	k.status.keeping = 1;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	broker_until(&b, k.asked[PP_KEEP_END] > 0);
	/* It got no other request. */
	ck_assert_uint_eq(k.asked[PP_KEEP_LIMIT] + k.asked[PP_KEEP_CPUS_HELD], 0);
	k.abi = PP_KEEP_ABI;
	broker_until(&b, k.status.tasks);
	ck_assert_uint_eq(rings(), 4);
}
END_TEST

START_TEST(cpus_come_and_go)
{
	b.hotplug.online.bits[0] = 0x3;
	begin();
	ck_assert_uint_eq(rings(), 2);
	b.hotplug.online.bits[0] = 0x7;
	/* (Without an account of CPUs any of them may have been offline, too.) */
	sideband_came(&b.sideband);
	broker_until(&b, rings() == 3);
	ck_assert_uint_eq(k.asked[PP_KEEP_TASKS], 1);
}
END_TEST

/* Events do not wait for the keeper, and do not fail with it. */
START_TEST(nothing_else_suffers)
{
	keeper_stop(&k);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 0);
	ck_assert_uint_eq(root.body.sideband_reply.pid, 0);
	ck_assert_uint_eq(root.fds.n, 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);

	/* The engine cannot: the broker does not retry in a loop, only when something may have
	 * changed. */
	keeper_start(&k, &b);
	broker_until(&b, !b.sideband.waiting);
	b.engine.mood = FAKE_FAILS;
	ck_assert_int_eq(client_create(&root, "a", "y"), 0);
	b.engine.moods = 1;
	broker_until(&b, b.sideband.refused);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 0);
	ck_assert_uint_eq(root.body.sideband_reply.pid, FAKE_KEEPER_PID);
	ck_assert_uint_eq(b.engine.sideband, 0);
	sideband_retry(&b.sideband);
	broker_until(&b, k.status.tasks);
}
END_TEST

/* Fewer descriptors than the engine says: the broker reconnects and asks again. */
START_TEST(engine_lies)
{
	b.engine.mood = FAKE_LIES_SIZE;
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	b.engine.moods = 1;
	broker_until(&b, k.status.tasks);
	ck_assert_uint_eq(rings(), 4);
	ck_assert_uint_eq(b.engine.sideband, 3);
}
END_TEST

/* Everything ends during an order; then everything is there again. */
START_TEST(drop_in_between)
{
	fake_wait(&b.engine, true);
	client_send_create(&root, "a", "x");
	broker_until(&b, b.sideband.known);
	broker_settle(&b);
	fake_wait(&b.engine, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	begin();
	ck_assert_uint_eq(rings(), 4);
	sideband_configure(&b.sideband, false, LIMIT);
	broker_until(&b, k.fd < 0);
	ck_assert_uint_eq(k.status.keeping, 0);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 0);
	sideband_configure(&b.sideband, true, 2 * LIMIT);
	broker_until(&b, k.status.tasks);
	ck_assert_uint_eq(k.status.max_memory, 2 * LIMIT);
	sideband_configure(&b.sideband, true, LIMIT);
	broker_until(&b, k.status.max_memory == LIMIT);
}
END_TEST

/* ── who gets it ────────────────────────────────────────────────────────────────────────── */

START_TEST(rights)
{
	const struct pp_msg_sideband_reply *reply = &team.body.sideband_reply;

	/* There is no event that they could read. */
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &everything), -EACCES);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 0);
	begin();
	k.status.processes = 12;
	ck_assert_int_eq(client_call(&member, PP_OP_SIDEBAND, &everything), -EACCES);
	ck_assert_int_eq(client_call(&member, PP_OP_SIDEBAND, &numbers), -EACCES);
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(reply->keeping, 1);
	ck_assert_uint_eq(reply->size, k.size);
	ck_assert_uint_eq(reply->processes, 12);
	ck_assert_uint_eq(reply->max_memory, LIMIT);
	ck_assert_uint_eq(team.fds.n, 1);
	ck_assert_uint_eq(charged(TEAM), k.size);
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &numbers), 0);
	ck_assert_uint_eq(reply->pid, FAKE_KEEPER_PID);
	ck_assert_uint_eq(reply->size, 0);
	ck_assert_uint_eq(charged(TEAM), 0);
}
END_TEST

START_TEST(senseless_requests)
{
	static const struct pp_msg_sideband_request bad[] = {
		{ .flags = 2 },
		{ .reserved = 1 },
		{ .since = 2, .until = 1 },
		{ .since = 2, .flags = PP_SIDEBAND_STATUS },
	};
	unsigned asked;

	begin();
	asked = k.asked[PP_KEEP_TAKE] + k.asked[PP_KEEP_HELLO];
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &bad[i]), -EINVAL);
	ck_assert_uint_eq(k.asked[PP_KEEP_TAKE] + k.asked[PP_KEEP_HELLO], asked);
}
END_TEST

START_TEST(times)
{
	const struct pp_msg_sideband_request some = { .since = 5, .until = 9 };

	begin();
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &some), 0);
	ck_assert_uint_eq(k.last.since, 5);
	ck_assert_uint_eq(k.last.until, 9);
}
END_TEST

START_TEST(limits_of_copies)
{
	begin();
	b.quota.per_user.max[QUOTA_COPIES] = k.size;
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &everything), 0);
	k.size++;
	/* (The client closes the earlier file with the next reply.) */
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &everything), -EDQUOT);
	ck_assert_uint_eq(charged(TEAM), 0);
	ck_assert_int_eq(client_call(&team, PP_OP_SIDEBAND, &numbers), 0);
}
END_TEST

/* One at a time, users in turn; a client that leaves costs nothing. */
START_TEST(queue)
{
	begin();
	keeper_hold(&k, true);
	for (unsigned i = 0; i < 5; i++)
		client_send(&team, PP_OP_SIDEBAND, &everything);
	client_send(&root, PP_OP_SIDEBAND, &everything);
	broker_settle(&b);
	keeper_hold(&k, false);
	ck_assert_int_eq(client_receive(&root), 0);
	ck_assert_uint_eq(root.fds.n, 1);
	ck_assert_uint_le(k.asked[PP_KEEP_TAKE], 3);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(client_receive(&team), 0);
		ck_assert_uint_eq(team.fds.n, 1);
	}
	keeper_hold(&k, true);
	client_send(&team, PP_OP_SIDEBAND, &everything);
	broker_settle(&b);
	client_end(&team);
	keeper_hold(&k, false);
	broker_until(&b, !b.service.askings);
	ck_assert_uint_eq(charged(TEAM), 0);
	client_begin(&b, &team, TEAM);
}
END_TEST

START_TEST(failing)
{
	begin();
	k.dies_at = PP_KEEP_TAKE;
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), -EAGAIN);
	broker_until(&b, k.status.tasks);
	k.fails_at = PP_KEEP_TAKE;
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), -ENOMEM);
	k.lies = true;
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), -EAGAIN);
	k.lies = false;
	/* A client that is too early waits until there is something. */
	ck_assert_int_eq(client_delete(&root, "a", "x"), 0);
	broker_until(&b, k.fd < 0);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	ck_assert_int_eq(client_call(&root, PP_OP_SIDEBAND, &everything), 0);
	ck_assert_uint_eq(root.body.sideband_reply.keeping, 1);
	ck_assert_uint_eq(root.fds.n, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sideband");
	TCase *t = tcase_create("all");

	need(no_root());
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, reasons);
	tcase_add_test(t, first_event);
	tcase_add_test(t, last_event);
	tcase_add_test(t, left_over);
	tcase_add_test(t, another_connection);
	tcase_add_test(t, keeper_dies);
	tcase_add_test(t, keeper_is_stuck);
	tcase_add_test(t, keeper_does_not_greet);
	tcase_add_test(t, keeper_of_another_version);
	tcase_add_test(t, cpus_come_and_go);
	tcase_add_test(t, nothing_else_suffers);
	tcase_add_test(t, engine_lies);
	tcase_add_test(t, drop_in_between);
	tcase_add_test(t, rights);
	tcase_add_test(t, senseless_requests);
	tcase_add_test(t, times);
	tcase_add_test(t, limits_of_copies);
	tcase_add_test(t, queue);
	tcase_add_test(t, failing);
	suite_add_tcase(s, t);
	return run_suite(s);
}
