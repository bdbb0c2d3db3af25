// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings about sleeps: who is behind one, and who is not. */
#include <signal.h>

#include "tests/unit/findings-fixture.h"

static void sleeps(uint32_t waiter, const char *waker, uint32_t waker_tid)
{
	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", "waiter", waiter, t, t + 1, "timer", 999);
	ended(LATENCY_OFF_CPU, "S", "waiter", waiter, 100, 150, waker, waker_tid);
}

/* The holder ran for 40 of 50 ms. */
START_TEST(test_sleep)
{
	const struct finding *g;

	sleeps(11, "holder", 12);
	ran("holder", 12, 0, 100, 120, false);
	ran("holder", 12, 1, 130, 150, true);
	finish(1000);
	g = find(FINDING_SLEEP);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, "holder", 12);
	is(&g->victim, "waiter", 11);
	ck_assert_uint_eq(g->max, 50 * MS);
	ck_assert_uint_eq(g->percent, 80);
	ck_assert_uint_eq(g->usual, 1 * MS);
}
END_TEST

/* Another process lets it wait. An interrupt can wake it in any: so not one that ran meanwhile, itself or
 * another one of its name (a loop that begins many), unless it slept as soon as it had woken it; nor a thread
 * of the kernel, nor one whose end it waited for. */
static const struct {
	const char *waker;
	uint32_t runs; /* who runs; 0: nobody */
	uint64_t from, to;
	bool ends, is_told;
} peers[] = {
	{ "peer", 0, 0, 0, false, true },	  { "peer", 72, 100, 151, false, false },
	{ "peer", 72, 20, 150, false, true },	  { "peer", 92, 100, 130, false, false },
	{ "kworker/0:1", 0, 0, 0, false, false }, { "peer", 0, 0, 0, true, false },
	{ "peer", 72, 200, 300, false, true },
};

START_TEST(test_peer)
{
	const char *waker = peers[_i].waker;
	struct latency_now now = { .time = 149 * MS };
	struct latency_who ending = who(waker, 72);
	const struct finding *g;

	if (peers[_i].runs)
		ran(waker, peers[_i].runs, 0, peers[_i].from, peers[_i].to, true);
	if (peers[_i].ends)
		ck_assert_int_eq(findings_exit(f, &now, &ending), 0);
	sleeps(11, waker, 72);
	finish(1000);
	ck_assert_ptr_null(find(FINDING_SLEEP));
	g = find(FINDING_PEER);
	ck_assert_int_eq(!!g, peers[_i].is_told);
	if (!g)
		return;
	is(&g->culprit, "peer", 72);
	is(&g->victim, "waiter", 11);
	ck_assert_ptr_null(g->through.comm);
	ck_assert_uint_eq(g->max, 50 * MS);
}
END_TEST

/* Who mostly wakes it does so however much it runs; but not a thread of the kernel, which hands on what others do (1),
 * nor one that always runs, and that timers come upon (2). */
START_TEST(test_peer_as_usual)
{
	const char *waker = _i == 1 ? "kworker/u8:1" : "server";

	for (uint64_t t = 0; t < 20; t++) {
		ended(LATENCY_OFF_CPU, "S", "waiter", 11, t, t + 1, waker, 72);
		ran(waker, 72, 0, t, t + 1, _i < 2);
	}
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 100, 160, waker, 72);
	ran(waker, 72, 0, 20, 1000, false);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), !_i);
	ck_assert_ptr_nonnull(find(FINDING_USAGE));
}
END_TEST

/* What runs at the end did not sleep just afterwards. */
START_TEST(test_peer_at_the_end)
{
	sleeps(11, "hog", 72);
	ran("hog", 72, 0, 0, 151, false);
	finish(151);
	ck_assert_ptr_null(find(FINDING_PEER));
}
END_TEST

/* Who sleeps so two thirds of the time may be idle: it weighs a ninth. */
START_TEST(test_peer_weighs)
{
	double weight[2];

	for (int i = 0; i < 2; i++) {
		end();
		begin();
		sleeps(11, "peer", 72);
		if (i)
			ended(LATENCY_OFF_CPU, "S", "waiter", 11, 200, 817, "stranger", 52);
		ran("stranger", 52, 0, 0, 1000, false);
		finish(1000);
		weight[i] = find(FINDING_PEER)->weight;
	}
	ck_assert(weight[1] > weight[0] / 9.2 && weight[1] < weight[0] / 7.8);
}
END_TEST

/* Nobody woke it: it can have waited for another machine. Not so who hardly does anything else (1), and a thread of
 * the kernel (2). */
START_TEST(test_alone)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", _i == 2 ? "ksoftirqd/0" : "client", 11, t, t + 1, NULL,
		      0);
	ended(LATENCY_OFF_CPU, "S", _i == 2 ? "ksoftirqd/0" : "client", 11, 50, _i == 1 ? 951 : 949,
	      NULL, 0);
	finish(1000);
	g = find(FINDING_ALONE);
	ck_assert_int_eq(!!g, _i == 0);
	if (!g)
		return;
	ck_assert_ptr_null(g->culprit.comm);
	is(&g->victim, "client", 11);
	ck_assert_uint_eq(g->max, 899 * MS);
	ck_assert_uint_eq(g->usual, MS);
}
END_TEST

/* A thread of the kernel sleeps because nobody wants anything, whoever wakes it then. */
START_TEST(test_idle_kernel)
{
	for (uint64_t t = 0; t < 20; t++)
		ended(LATENCY_OFF_CPU, "S", "ksoftirqd/0", 14, t, t + 1, "client", 72);
	ended(LATENCY_OFF_CPU, "S", "ksoftirqd/0", 14, 100, 160, "client", 72);
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

/* Where sched_process_exit is not recorded, its last switch tells. */
START_TEST(test_peer_that_ends)
{
	struct latency_run run = { .begin = 149 * MS,
				   .end = 150 * MS,
				   .pid = 70,
				   .who = who("peer", 72),
				   .sleeps = true,
				   .exits = _i };

	ck_assert_int_eq(findings_ran(f, &run), 0);
	sleeps(11, "peer", 72);
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), !_i);
}
END_TEST

/* A timer came upon it, as most such sleeps have no known waker (of two like it, none or one has). */
START_TEST(test_peer_by_timer)
{
	sleeps(11, "peer", 72);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 200, 250, _i ? "peer" : NULL, 72);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 300, 350, NULL, 0);
	ended(LATENCY_OFF_CPU, "S", "waiter", 11, 400, 424, NULL,
	      0); /* too short to be like these */
	finish(1000);
	ck_assert_int_eq(!!find(FINDING_PEER), _i);
}
END_TEST

/* Who does hardly anything else than to sleep has nothing to do. */
START_TEST(test_peer_of_an_idler)
{
	sleeps(11, "peer", 72);
	for (uint64_t t = 200; t < 2000; t += 100)
		ended(LATENCY_OFF_CPU, "S", "waiter", 11, t, t + 100, "peer", 72);
	finish(2000);
	ck_assert_int_eq(!!find(FINDING_PEER), 0);
}
END_TEST

/* A client asks each 100 ms: what it sleeps in between is not what it waits for answers. */
START_TEST(test_peer_of_a_paced_client)
{
	for (uint64_t t = 0; t < 2000; t += 100) {
		ended(LATENCY_OFF_CPU, "S", "client", 11, t, t + 1, "server", 72);
		ended(LATENCY_OFF_CPU, "S", "client", 11, t + 1, t + 100, NULL, 0);
		ended(LATENCY_OFF_CPU, "S", "client", 11, t, t + 98, NULL, 0);
	}
	ended(LATENCY_OFF_CPU, "S", "client", 11, 2000, 2250, "server", 72);
	finish(3000);
	ck_assert_ptr_nonnull(find(FINDING_PEER));
	ck_assert_uint_eq(find(FINDING_PEER)->max, 250 * MS);
	ck_assert_uint_eq(find(FINDING_PEER)->usual, 1 * MS);
}
END_TEST

/* The waker waited itself: for a third one, which kept it sleeping (0), blocked (1), or from the CPU (2, 3); or
 * mostly it did not (4). That was another process (5), upon which an interrupt may have come (6). A third one had
 * stopped its process (7), or nobody knows who had (8). A disk had requests meanwhile (9). It took turns with a third
 * one, and waited most of the time (10), or not (11). */
START_TEST(test_root)
{
	struct latency_now now = { .time = 101 * MS, .who = who("root", 73) };
	struct latency_who process = who("server", 10);
	const struct finding *g;

	ran("root", 13, 3, 0, 1, true);
	switch (_i) {
	case 0:
	case 1:
		ended(LATENCY_OFF_CPU, _i ? "D" : "S", "holder", 12, 101, 149, "root", 13);
		break;
	case 2:
	case 3:
		ran("root", 13, 0, 90, 160, true);
		ended(LATENCY_WAKEUPS, _i == 2 ? "woken" : "preempted", "holder", 12, 102, 149,
		      NULL, 0);
		break;
	case 6:
		ran("root", 73, 1, 100, 151, false);
		/* fall through */
	case 5:
		ended(LATENCY_OFF_CPU, "S", "holder", 12, 101, 149, "root", 73);
		break;
	case 9:
		request("writer", 90, 100, 151);
		ended(LATENCY_OFF_CPU, "D", "holder", 12, 101, 149, "root", 73);
		break;
	case 7:
		ck_assert_int_eq(findings_signal(f, &now, &process, SIGSTOP, 0), 0);
		/* fall through */
	case 8:
		ran("holder", 12, 2, 2, 3, true); /* which tells its process */
		ended(LATENCY_OFF_CPU, "T", "holder", 12, 101, 149, "other", 83);
		break;
	case 10:
	case 11:
		for (uint64_t t = 100; t < 148; t += 12) {
			ran("holder", 12, 0, t, t + (_i == 10 ? 2 : 8), false);
			ran("root", 73, 0, t + (_i == 10 ? 2 : 8), t + 12, false);
			ended(LATENCY_WAKEUPS, "preempted", "holder", 12, t + (_i == 10 ? 2 : 8),
			      t + 12, NULL, 0);
		}
		break;
	default:
		ended(LATENCY_OFF_CPU, "S", "holder", 12, 101, 120, "root", 13);
	}
	sleeps(11, "holder", 12);
	finish(1000);
	for (g = found; g < found + n_found; g++)
		if (g->kind == FINDING_SLEEP && !strcmp(g->victim.comm, "waiter"))
			break;
	ck_assert(g < found + n_found);
	if (_i == 4 || _i == 6 || (_i >= 8 && _i != 10)) {
		is(&g->culprit, "holder", 12);
		ck_assert_ptr_null(g->through.comm);
	} else {
		is(&g->culprit, "root", _i < 4 ? 13 : 73);
		is(&g->through, "holder", 12);
	}
}
END_TEST

/* Of a convoy each wakes the next; the first was woken by the one who held what all wait for. Records that go in
 * a circle end. */
START_TEST(test_convoy)
{
	ran("root", 10, 3, 0, 1, true);
	for (uint32_t i = 0; i < 8; i++)
		ended(LATENCY_OFF_CPU, "S", "next", 12 + i, 100, 150 - i,
		      i < 7 || _i ? "next" : "root",
		      i < 7 ? 13 + i
		      : _i  ? 12
			    : 10);
	sleeps(11, "next", 12);
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_SLEEP));
	if (!_i)
		is(&find(FINDING_SLEEP)->culprit, "root", 10);
}
END_TEST

/* No disk explains it: another thread of the process (0), or a process (1), woke it. While a disk had requests it may
 * have been an interrupt (2, 3). Nobody is known (4). */
START_TEST(test_blocked_by)
{
	bool on_disk = _i == 2 || _i == 3, own = _i == 0 || _i == 2;
	enum finding_kind kind = own ? FINDING_SLEEP : FINDING_PEER;

	if (own)
		ran("waker", 31, 1, 0, 60, false);
	request("dd", 90, 0, on_disk ? 90 : 12);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 60, _i == 4 ? NULL : "waker", own ? 31 : 72);
	finish(1000);
	ck_assert_int_eq(!!find(kind), _i < 2);
	ck_assert_int_eq(!!find(FINDING_DISK), on_disk);
	ck_assert_int_eq(!!find(FINDING_BLOCKED), _i == 4);
	if (find(kind)) {
		ck_assert(find(kind)->is_blocked);
		ck_assert_uint_eq(find(kind)->usual, 0);
	}
}
END_TEST

/* A short vfork(), which is no finding (0), and a long one (1); and what began before the requests are known (2). */
START_TEST(test_blocked_or_not)
{
	struct latency_now now = { .time = 0 };
	struct latency_who parent = who("sh", 30), child = who("sh", 50);
	uint64_t ms = _i == 1 ? 100 : 99;

	request("dd", 90, 900, 960);
	if (_i < 2)
		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
	knows_disks = _i != 2;
	ended(LATENCY_OFF_CPU, "D", "sh", 30, 0, ms, "sh", 50);
	finish(1000);
	ck_assert_uint_eq(n_found, _i == 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("findings-causes");
	TCase *tc = tcase_create("findings-causes");

	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, test_sleep);
	tcase_add_loop_test(tc, test_peer, 0, ARRAY_SIZE(peers));
	tcase_add_loop_test(tc, test_peer_as_usual, 0, 3);
	tcase_add_test(tc, test_peer_at_the_end);
	tcase_add_test(tc, test_peer_weighs);
	tcase_add_loop_test(tc, test_alone, 0, 3);
	tcase_add_test(tc, test_idle_kernel);
	tcase_add_loop_test(tc, test_peer_that_ends, 0, 2);
	tcase_add_loop_test(tc, test_peer_by_timer, 0, 2);
	tcase_add_test(tc, test_peer_of_an_idler);
	tcase_add_test(tc, test_peer_of_a_paced_client);
	tcase_add_loop_test(tc, test_root, 0, 12);
	tcase_add_loop_test(tc, test_convoy, 0, 2);
	tcase_add_loop_test(tc, test_blocked_by, 0, 5);
	tcase_add_loop_test(tc, test_blocked_or_not, 0, 3);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
