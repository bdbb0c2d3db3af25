// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings of a moment, beside those of the time before it. */
#include "client/perfctl/replay/compare-findings.h"

#include <signal.h>
#include <string.h>

#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MS UINT64_C(1000000)

static struct latency_who who(const char *comm, uint32_t tid)
{
	struct latency_who w = { .tid = tid };

	snprintf(w.comm, sizeof(w.comm), "%s", comm);
	return w;
}

/* ── A moment and the time before it: the second from 10 s on, and the ten before ── */

static struct compare_findings *c;

/* The thread waits for a CPU that the other has. */
static void waited(const char *comm, uint64_t from, uint64_t to, const char *culprit)
{
	struct latency_run run = { .begin = from * MS,
				   .end = to * MS,
				   .pid = 20,
				   .who = who(culprit, 20),
				   .sleeps = true };
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

/* sh begins so many processes, of which the last one runs for so long. */
static void began(uint64_t n, uint64_t at, uint64_t longest)
{
	for (uint32_t i = 0; i < n; i++) {
		struct latency_now now = { .time = (at + i) * MS };
		uint32_t tid = 1000 + (uint32_t)at + i;
		struct latency_who parent = who("sh", 10), child = who("true", tid);
		struct latency_run run = { .begin = now.time,
					   .end = now.time + (i + 1 < n ? 1 : longest) * MS,
					   .pid = tid,
					   .who = child,
					   .sleeps = true };
		struct findings *f = compare_findings_at(c, now.time);

		ck_assert_int_eq(findings_fork(f, &now, &parent, &child), 0);
		ck_assert_int_eq(c->watcher.ran(c, &run), 0);
	}
}

/* More processes than ever (0), but not as many as always (1), also if one of them runs for long (2). */
START_TEST(test_forks)
{
	compare_begin_of(10);
	for (uint64_t t = 0; t < 10000; t += 1000)
		began(_i ? 30 : 5, t, 1);
	began(30, 10500, _i == 2 ? 40 : 1);
	expect_told(_i ? NULL : "true");
}
END_TEST

/* It dies of a signal. */
static void died(const char *comm, uint64_t at, int number)
{
	struct findings *f = compare_findings_at(c, at * MS);
	struct latency_who victim = who(comm, 40 + (uint32_t)at);
	struct latency_now now = { .time = at * MS, .who = victim };

	ck_assert_int_eq(findings_signal(f, &now, &victim, number, 1), 0);
	ck_assert_int_eq(findings_exit(f, &now, &victim), 0);
}

/* That comes first, however often others have died (0); but not if it always does (1), nor who was killed (2). */
START_TEST(test_fault)
{
	char name[8] = "new-0";

	compare_begin_of(10);
	for (uint64_t t = 0; t < 10000; t += 1000) {
		name[4] = (char)('0' + t / 1000);
		died(_i == 1 ? "service" : name, t + 10, SIGSEGV);
		died(_i == 1 ? "service" : name, t + 20, SIGSEGV);
	}
	waited("loop", 10500, 10560, "hog");
	died("service", 10600, _i == 2 ? SIGKILL : SIGSEGV);
	ck_assert_int_eq(compare_findings_finish(c), 0);
	ck_assert_uint_eq(c->n_told, _i ? 1 : 2);
	ck_assert_str_eq(_i ? c->told[0]->victim.comm : c->told[0]->culprit.comm,
			 _i ? "loop" : "service");
	compare_findings_free(c);
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
	Suite *s = suite_create("findings-moments");
	TCase *tc = tcase_create("findings-moments");

	tcase_add_test(tc, test_new);
	tcase_add_loop_test(tc, test_more, 0, 3);
	tcase_add_loop_test(tc, test_noise, 0, 2);
	tcase_add_test(tc, test_incident);
	tcase_add_loop_test(tc, test_forks, 0, 3);
	tcase_add_loop_test(tc, test_fault, 0, 3);
	tcase_add_test(tc, test_too_little);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
