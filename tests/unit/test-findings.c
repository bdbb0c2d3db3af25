// SPDX-License-Identifier: LGPL-2.1-or-later
/* Facts become findings: who did it, how often and how long; and what is usual becomes none. */
#include "client/perfctl/replay/compare-findings.h"

#include <signal.h>
#include <string.h>

#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MS UINT64_C(1000000)

static struct findings *f;
static const struct finding *found;
static size_t n_found;

static void begin(void)
{
	ck_assert_int_eq(findings_new(&f), 0);
}

static void end(void)
{
	findings_free(f);
}

static struct latency_who who(const char *comm, uint32_t tid)
{
	struct latency_who w = { .tid = tid };

	snprintf(w.comm, sizeof(w.comm), "%s", comm);
	return w;
}

static void ran(const char *comm, uint32_t tid, uint32_t cpu, uint64_t from, uint64_t to,
		bool sleeps)
{
	struct latency_run run = { from * MS, to * MS, cpu, tid / 10 * 10, who(comm, tid), sleeps };

	ck_assert_int_eq(findings_ran(f, &run), 0);
}

/* Times in ms. */
static void ended(enum latency_kind kind, const char *label, const char *comm, uint32_t tid,
		  uint64_t from, uint64_t to, const char *waker, uint32_t waker_tid)
{
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.who = who(comm, tid),
		.pid = tid / 10 * 10, /* threads of one process differ in their last digit */
		.label = label,
		.was_woken = waker,
		.waker = who(waker ?: "", waker_tid),
	};

	ck_assert_int_eq(findings_ended(f, kind, &one), 0);
}

static void finish(uint64_t until)
{
	ck_assert_int_eq(findings_finish(f, 0, until * MS, &found, &n_found), 0);
}

static const struct finding *find(enum finding_kind kind)
{
	for (size_t i = 0; i < n_found; i++)
		if (found[i].kind == kind)
			return &found[i];
	return NULL;
}

static void is(const struct finding_party *p, const char *comm, uint32_t id)
{
	ck_assert_str_eq(p->comm, comm);
	ck_assert_uint_eq(p->id, id);
}

START_TEST(test_nothing)
{
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

/* The hog had 30 of the 40 ms that each of two waits took. */
START_TEST(test_cpu)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 400; t += 200) {
		ran("other", 30, 0, t, t + 10, false);
		ran("hog", 20, 0, t + 10, t + 60, true); /* also when nobody waits any more */
		ended(LATENCY_WAKEUPS, "woken", "loop", 10, t, t + 40, NULL, 0);
		ended(LATENCY_WAKEUPS, "preempted", "loop", 10, t + 41, t + 60, NULL, 0);
	}
	finish(1000);
	g = find(FINDING_CPU);
	ck_assert_ptr_nonnull(g);
	is(&g->culprit, "hog", 20);
	is(&g->victim, "loop", 10);
	ck_assert_uint_eq(g->n, 2);
	ck_assert_uint_eq(g->max, 40 * MS);
	ck_assert_uint_eq(g->sum, 80 * MS);
	ck_assert_uint_eq(g->percent, 75);
	ck_assert_uint_eq(g->begin, 0);
}
END_TEST

/* Of another CPU's threads nobody is to blame; nor where the thread that waits runs all the time itself. */
START_TEST(test_cpu_of_others)
{
	ran("hog", 20, 1, 0, 500, true);
	ended(LATENCY_WAKEUPS, "woken", "loop", 10, 0, 400, NULL, 0);
	ran("busy", 40, 0, 0, 400, false);
	ran("busy", 50, 0, 400, 1000, false);
	ran("busy", 50, 2, 0, 400, false);
	ended(LATENCY_WAKEUPS, "woken", "busy", 50, 350, 400, NULL, 0);
	finish(1000);
	for (size_t i = 0; i < n_found; i++)
		if (found[i].kind == FINDING_CPU)
			is(&found[i].victim, "loop", 10);
}
END_TEST

/* What waits for a kernel thread waits for somebody else's work. */
START_TEST(test_cpu_of_the_kernel)
{
	ran("hog", 20, 0, 0, 100, true);
	ended(LATENCY_WAKEUPS, "woken", "loop", 10, 0, 100, NULL, 0);
	ended(LATENCY_WAKEUPS, "woken", "kworker/0:1", 30, 0, 100, NULL, 0);
	ended(LATENCY_WAKEUPS, "woken", "perfctl", 40, 0, 100, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 2);
	is(&found[0].victim, "loop", 10);
	ck_assert(found[0].weight > 99 && found[0].weight < 101);
	is(&found[1].victim, "perfctl", 40);
}
END_TEST

/* _i: how long the long one is, in ms; a steady thread is no finding however long it runs. */
static const struct {
	uint64_t usual, once, n;
	bool stands_out;
} bursts[] = {
	{ 1, 150, 20, true }, { 1, 20, 20, true },    { 1, 19, 20, false },
	{ 0, 9, 20, false },  { 150, 150, 5, false }, { 1, 150, 8, false },
};

START_TEST(test_burst)
{
	uint64_t t = 0, usual = bursts[_i].usual;
	const struct finding *g;

	for (uint64_t i = 0; i < bursts[_i].n; i++, t += 200)
		ran("server", 10, 0, t, t + usual, true);
	/* In two parts: another thread got the CPU meanwhile. */
	ran("server", 10, 0, t, t + bursts[_i].once / 2, false);
	ran("server", 10, 1, t + 100, t + 100 + bursts[_i].once - bursts[_i].once / 2, true);
	finish(t + 100000);
	g = find(FINDING_BURST);
	ck_assert_int_eq(!!g, bursts[_i].stands_out);
	if (!g)
		return;
	is(&g->culprit, "server", 10);
	ck_assert_uint_eq(g->n, 1);
	ck_assert_uint_eq(g->max, bursts[_i].once * MS);
	ck_assert_uint_eq(g->usual, usual * MS);
	ck_assert_uint_eq(g->begin, t * MS);
}
END_TEST

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

/* An interrupt in any other process can wake it. */
START_TEST(test_sleep_by_interrupt)
{
	sleeps(11, "stranger", 72);
	finish(1000);
	ck_assert_ptr_null(find(FINDING_SLEEP));
}
END_TEST

static void request(const char *comm, uint32_t tid, uint64_t from, uint64_t to)
{
	ended(LATENCY_BLOCK, "254:0 write queue", comm, tid, from, from + 1, NULL, 0);
	ended(LATENCY_BLOCK, "254:0 write device", comm, tid, from + 1, to, NULL, 0);
}

START_TEST(test_disk)
{
	const struct finding *g;

	for (uint64_t t = 0; t < 100; t += 10) {
		request("dd", 20, t, t + 10);
		ended(LATENCY_OFF_CPU, "D", "dd", 20, t, t + 10, NULL, 0);
	}
	request("small", 30, 0, 4);
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "jbd2/vda-8", 90, 0, 80, NULL, 0);
	finish(1000);
	g = find(FINDING_DISK);
	ck_assert_ptr_nonnull(g);
	ck_assert_str_eq(g->device, "254:0");
	is(&g->culprit, "dd", 20);
	is(&g->victim, "small", 30);
	ck_assert_uint_eq(g->percent, 96); /* 90 of 93 ms */
	ck_assert_uint_eq(g->max, 40 * MS);
	ck_assert_ptr_null(find(FINDING_BLOCKED));
}
END_TEST

/* Without block requests. */
START_TEST(test_blocked)
{
	ended(LATENCY_OFF_CPU, "D", "small", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "quick", 40, 0, 4, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&find(FINDING_BLOCKED)->victim, "small", 30);
}
END_TEST

static void forks(uint64_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++) {
		struct latency_now now = { .time = i * MS };
		struct latency_who parent = who("sh", 10), child = who("sh", 1000 + 10 * i);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
		ran(name, 1000 + 10 * i, 0, i, i + 1, true);
		child = who(name, 1000 + i);
		ck_assert_int_eq(findings_exit(f, &now, &child), 0);
	}
}

START_TEST(test_forks)
{
	const struct finding *g;

	forks(_i ? 100 : 99, "true");
	finish(1000);
	g = find(FINDING_FORKS);
	ck_assert_int_eq(!!g, _i);
	if (!g)
		return;
	is(&g->culprit, "sh", 10);
	is(&g->victim, "true", 0);
	ck_assert_uint_eq(g->n, 100);
	ck_assert_uint_eq(g->sum, 100 * MS);
	ck_assert_uint_eq(g->begin, 0);
	ck_assert_uint_eq(g->end, 99 * MS);
}
END_TEST

/* Threads are no processes. */
START_TEST(test_threads)
{
	for (uint32_t i = 0; i < 200; i++) {
		struct latency_now now = { .time = i * MS };
		struct latency_who parent = who("sh", 10), child = who("sh", 11);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
		ended(LATENCY_OFF_CPU, "S", "sh", 11, i, i, NULL, 0);
	}
	finish(1000);
	ck_assert_ptr_null(find(FINDING_FORKS));
}
END_TEST

static const struct {
	int number, code;
	bool exits, by_itself, stands_out;
	uint32_t sender; /* as told; 0: nobody */
} signals[] = {
	{ SIGSEGV, 1, true, true, true, 0 },	{ SIGSEGV, 1, false, true, false, 0 },
	{ SIGABRT, -6, true, true, true, 0 },	{ SIGTERM, 0, true, false, false, 0 },
	{ SIGKILL, 0, true, false, true, 50 },	{ SIGSEGV, 0, true, false, true, 50 },
	{ SIGKILL, 128, true, false, true, 0 },
};

START_TEST(test_crash)
{
	struct latency_who victim = who("victim", 20);
	struct latency_now now = { .time = 5 * MS, .who = who("sender", 50) };
	const struct finding *g;

	if (signals[_i].by_itself)
		now.who = victim;
	ck_assert_int_eq(findings_signal(f, &now, &victim, signals[_i].number, signals[_i].code),
			 0);
	if (signals[_i].exits)
		ck_assert_int_eq(findings_exit(f, &now, &victim), 0);
	finish(1000);
	g = find(FINDING_CRASH);
	ck_assert_int_eq(!!g, signals[_i].stands_out);
	if (!g)
		return;
	is(&g->culprit, "victim", 20);
	ck_assert_int_eq(g->number, signals[_i].number);
	ck_assert_uint_eq(g->begin, 5 * MS);
	if (signals[_i].sender)
		is(&g->victim, "sender", signals[_i].sender);
	else
		ck_assert_ptr_null(g->victim.comm);
}
END_TEST

/* It woke another thread when it had another name, and that one runs only now. */
START_TEST(test_crash_of_a_waker)
{
	struct latency_who victim = who("victim", 20);
	struct latency_now now = { .time = 5 * MS, .who = victim };

	ck_assert_int_eq(findings_signal(f, &now, &victim, SIGSEGV, 1), 0);
	ended(LATENCY_OFF_CPU, "S", "other", 11, 1, 6, "parent", 20);
	ck_assert_int_eq(findings_exit(f, &now, &(struct latency_who){ .tid = 20 }), 0);
	finish(1000);
	ck_assert_ptr_nonnull(find(FINDING_CRASH));
	is(&find(FINDING_CRASH)->culprit, "victim", 20);
}
END_TEST

/* A shell that ends what it began has its reasons. */
START_TEST(test_killed_by_parent)
{
	struct latency_who parent = who("sh", 10), child = who("sh", 20);
	struct latency_now now = { .time = 5 * MS, .who = parent };

	ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
	ck_assert_int_eq(findings_signal(f, &now, &child, SIGKILL, 0), 0);
	ck_assert_int_eq(findings_exit(f, &now, &child), 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
}
END_TEST

START_TEST(test_memory)
{
	struct latency_now now = { .time = 10 * MS, .who = who("eater", 20) };
	struct latency_who victim = who("", 20);
	const struct finding *g;

	ck_assert_int_eq(findings_reclaim(f, &now, false), 0); /* began before the records */
	ck_assert_int_eq(findings_reclaim(f, &now, true), 0);
	now.time = 40 * MS;
	ck_assert_int_eq(findings_reclaim(f, &now, false), 0);
	now.time = 60 * MS;
	ck_assert_int_eq(findings_reclaim(f, &now, false), 0); /* its beginning is missing */
	ck_assert_int_eq(findings_victim(f, &now, &victim), 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 2);
	ck_assert_int_eq(found[0].kind, FINDING_OOM);
	is(&found[0].culprit, "eater", 20);
	g = find(FINDING_MEMORY);
	is(&g->victim, "eater", 20);
	ck_assert_uint_eq(g->n, 1);
	ck_assert_uint_eq(g->max, 30 * MS);
}
END_TEST

/* Two processes of one name are one row without a number. */
START_TEST(test_several)
{
	ended(LATENCY_OFF_CPU, "D", "cc1", 30, 0, 40, NULL, 0);
	ended(LATENCY_OFF_CPU, "D", "cc1", 40, 0, 30, NULL, 0);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&found[0].victim, "cc1", 0);
	ck_assert_uint_eq(found[0].n, 2);
	ck_assert_uint_eq(found[0].max, 40 * MS);
}
END_TEST

/* The recorder's own programs, and who had the CPU. */
START_TEST(test_usage)
{
	ran("cc1", 20, 1, 0, 500, false);
	finish(1000);
	ck_assert_uint_eq(n_found, 0);
	end();
	begin();
	ran("perfctl", 10, 0, 0, 900, false); /* a name that anybody can have */
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	end();
	begin();
	ran("cc1", 20, 1, 0, 600, false);
	ran("sh", 30, 1, 600, 800, false);
	finish(1000);
	ck_assert_uint_eq(n_found, 1);
	is(&found[0].culprit, "cc1", 20);
	ck_assert_uint_eq(found[0].percent, 75);
}
END_TEST

/* ── A moment and the time before it: the second from 10 s on, and the ten before ── */

static struct compare_findings *c;

/* The thread waits for a CPU that the other has. */
static void waited(const char *comm, uint64_t from, uint64_t to, const char *culprit)
{
	struct latency_run run = { from * MS, to * MS, 0, 20, who(culprit, 20), true };
	struct latency_interval one = {
		.begin = from * MS,
		.end = to * MS,
		.who = who(comm, 30),
		.pid = 30,
		.label = "woken",
		.waker = who("", 0),
	};

	ck_assert_int_eq(c->watcher.ran(c, &run), 0);
	ck_assert_int_eq(c->watcher.ended(c, LATENCY_WAKEUPS, &one), 0);
}

static void compare_begin_of(uint64_t seconds_before)
{
	ck_assert_int_eq(
		compare_findings_new((10 - seconds_before) * 1000 * MS, 10000 * MS, 11000 * MS, &c),
		0);
}

static void expect_told(const char *victim)
{
	ck_assert_int_eq(compare_findings_finish(c), 0);
	ck_assert_uint_eq(c->n_told, victim != NULL);
	if (victim)
		ck_assert_str_eq(c->told[0]->victim.comm, victim);
	compare_findings_free(c);
}

/* What is always there is not told, even if it is heavier than what is new. */
START_TEST(test_new)
{
	compare_begin_of(10);
	for (uint64_t t = 0; t < 11000; t += 1000)
		waited("make", t, t + 100, "cc1");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
}
END_TEST

/* Or as often, or as long, as ever. */
START_TEST(test_more)
{
	compare_begin_of(10);
	for (uint64_t t = 0; t < 11000; t += 500)
		waited("make", t, t + 40, "cc1");
	if (_i == 0)
		waited("make", 10700, 10790, "cc1"); /* longer */
	for (uint64_t t = 10050; t < 10450 && _i == 1; t += 50)
		waited("make", t, t + 40, "cc1"); /* more */
	if (_i == 2)
		waited("make", 10700, 10770, "cc1"); /* neither */
	expect_told(_i < 2 ? "make" : NULL);
}
END_TEST

/* Where somebody is new in every slice, somebody new is nothing. */
START_TEST(test_noise)
{
	char name[8] = "new-0";

	compare_begin_of(10);
	for (uint64_t t = 0; t < 10000; t += 1000) {
		name[4] = (char)('0' + t / 1000);
		waited(name, t, t + 40, "cc1");
	}
	waited("loop", 10500, _i ? 10570 : 10590, "hog");
	expect_told(_i ? NULL : "loop");
}
END_TEST

/* An earlier incident hides no later one; nor does it count what is older than all slices. */
START_TEST(test_incident)
{
	compare_begin_of(10);
	waited("victim", 3000, 3900, "other");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
	compare_begin_of(5);
	waited("loop", 3000, 3900, "hog");
	waited("loop", 10500, 10560, "hog");
	expect_told("loop");
}
END_TEST

/* Two slices say nothing; and a wait that is longer than the moment is of the time before. */
START_TEST(test_too_little)
{
	compare_begin_of(2);
	waited("loop", 10500, 10560, "hog");
	expect_told(NULL);
	compare_begin_of(10);
	waited("loop", 9200, 10560, "hog");
	expect_told(NULL);
}
END_TEST

int main(void)
{
	TCase *moments = tcase_create("moments");
	Suite *s = suite_create("findings");
	TCase *tc = tcase_create("findings");

	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, test_nothing);
	tcase_add_test(tc, test_cpu);
	tcase_add_test(tc, test_cpu_of_others);
	tcase_add_test(tc, test_cpu_of_the_kernel);
	tcase_add_loop_test(tc, test_burst, 0, ARRAY_SIZE(bursts));
	tcase_add_test(tc, test_sleep);
	tcase_add_test(tc, test_sleep_by_interrupt);
	tcase_add_test(tc, test_disk);
	tcase_add_test(tc, test_blocked);
	tcase_add_loop_test(tc, test_forks, 0, 2);
	tcase_add_test(tc, test_threads);
	tcase_add_loop_test(tc, test_crash, 0, ARRAY_SIZE(signals));
	tcase_add_test(tc, test_crash_of_a_waker);
	tcase_add_test(tc, test_killed_by_parent);
	tcase_add_test(tc, test_memory);
	tcase_add_test(tc, test_several);
	tcase_add_test(tc, test_usage);
	suite_add_tcase(s, tc);
	tcase_add_test(moments, test_new);
	tcase_add_loop_test(moments, test_more, 0, 3);
	tcase_add_loop_test(moments, test_noise, 0, 2);
	tcase_add_test(moments, test_incident);
	tcase_add_test(moments, test_too_little);
	suite_add_tcase(s, moments);
	return run_suite(s);
}
