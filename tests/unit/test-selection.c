// SPDX-License-Identifier: LGPL-2.1-or-later
/* Selection of records: by their thread, and by the threads that they name. */
#include <string.h>

#include "client/perfctl/events/selection.h"
#include "tests/unit/needs.h"

/* Replaces main.c's, which is not linked: nothing is wrong here. */
void complain(const char *fmt, ...)
{
	ck_abort_msg("%s", fmt);
}

int bad_usage(const struct call *call _unused_, const char *fmt, ...)
{
	ck_abort_msg("%s", fmt);
	return EXIT_USAGE;
}

static struct selection s;
static struct decoder *waking;

/* Like sched_waking, whose format does not have all of this, with a number that is no thread. */
static const char format[] = "name: x\nID: 7\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
			     "\tfield:pid_t next_pid;\toffset:12;\tsize:4;\tsigned:1;\n"
			     "\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;\n\n"
			     "print fmt: \"%d\", REC->pid\n";

static void setup(void)
{
	ck_assert_int_eq(decoder_new("sched:x", format, strlen(format), &waking), 0);
}

static void teardown(void)
{
	selection_done(&s);
	decoder_free(waking);
}

static void option(const char *name, const char *value)
{
	for (const struct verb_option *o = selection_options;; o++) {
		struct given g = { .value = value, .to = &s };

		if (!o->take)
			o = selection_about;
		g.option = o;
		if (!strcmp(o->name, name)) {
			ck_assert_int_eq(o->take(&g), EXIT_OK);
			return;
		}
	}
}

/* A record of thread `by` of `process` that names two threads, and has a third number. */
static bool wants(uint32_t process, uint32_t by, uint32_t pid, uint32_t next_pid, uint32_t prio)
{
	uint32_t raw[5] = { 7, by, pid, next_pid, prio };
	struct perfpersist_sample sample = {
		.pid = process, .tid = by, .raw = raw, .raw_size = sizeof(raw)
	};

	return selection_wants_who(&s, &sample, waking);
}

static void named(uint32_t process, uint32_t by, uint32_t pid, uint32_t next_pid, struct about *ret)
{
	uint32_t raw[5] = { 7, by, pid, next_pid, 0 };
	struct perfpersist_sample sample = {
		.pid = process, .tid = by, .raw = raw, .raw_size = sizeof(raw)
	};

	selection_whom(&s, &sample, waking, ret);
}

/* Process 10 has the threads 10 and 11. */
static void learn(void)
{
	ck_assert_int_eq(selection_learn(&s, 10, 10), 0);
	ck_assert_int_eq(selection_learn(&s, 10, 11), 0);
	ck_assert_int_eq(selection_learn(&s, 20, 20), 0);
}

START_TEST(all)
{
	learn();
	ck_assert(!selection_has_ids(&s));
	ck_assert(wants(20, 20, 0, 0, 0));
}
END_TEST

START_TEST(by_processes)
{
	option("pid", "10,30");
	learn();
	ck_assert(wants(10, 11, 0, 0, 0));
	ck_assert(wants(30, 31, 0, 0, 0));
	ck_assert(!wants(20, 20, 11, 11, 11));
	/* The kernel does not give the process of a task that is exiting. */
	ck_assert(wants(UINT32_MAX, 11, 0, 0, 0));
	ck_assert(!wants(UINT32_MAX, 20, 0, 0, 0));
}
END_TEST

START_TEST(by_threads)
{
	option("tid", "11");
	learn();
	ck_assert(wants(10, 11, 0, 0, 0));
	ck_assert(!wants(10, 10, 0, 0, 0));
	option("pid", "20");
	ck_assert(wants(20, 20, 0, 0, 0));
}
END_TEST

START_TEST(about_processes)
{
	option("pid", "10");
	option("about", NULL);
	learn();
	ck_assert(wants(10, 11, 0, 0, 0));
	ck_assert(wants(20, 20, 10, 0, 0));
	ck_assert(wants(20, 20, 0, 11, 0));
	ck_assert(!wants(20, 20, 0, 0, 11)); /* a priority is no thread */
	ck_assert(!wants(20, 20, 12, 20, 0));
}
END_TEST

START_TEST(about_threads)
{
	option("tid", "11");
	option("about", NULL);
	learn();
	ck_assert(wants(20, 20, 11, 0, 0));
	ck_assert(!wants(20, 20, 10, 0, 0));
}
END_TEST

START_TEST(whom)
{
	struct about about;

	option("about", NULL);
	learn();
	named(20, 20, 11, 20, &about); /* a thread of 10, and itself */
	ck_assert_uint_eq(about.n, 1);
	ck_assert_uint_eq(about.pids[0], 10);
	named(20, 20, 10, 11, &about); /* two of one process */
	ck_assert_uint_eq(about.n, 1);
	named(10, 11, 20, 30, &about);
	ck_assert_uint_eq(about.n, 2);
	ck_assert_uint_eq(about.pids[1], 30);
}
END_TEST

/* The last 2 s before the newest record, or before --until. */
START_TEST(last)
{
	option("last", "2s");
	selection_settle(&s, 1, 10000000000);
	ck_assert(selection_wants_when(&s, 8000000000, 0));
	ck_assert(!selection_wants_when(&s, 7999999999, 0));
	selection_done(&s);
	option("last", "2s");
	option("until", "5.5");
	selection_settle(&s, 1, 10000000000);
	ck_assert(selection_wants_when(&s, 3500000000, 0));
	ck_assert(selection_wants_when(&s, 5500000000, 0));
	ck_assert(!selection_wants_when(&s, 3499999999, 0));
	ck_assert(!selection_wants_when(&s, 5500000001, 0));
	selection_done(&s);
	option("last", "2s");
	option("until", "11");
	selection_settle(&s, 1, 10000000000);
	ck_assert(!selection_wants_when(&s, 7999999999, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("selection");
	TCase *tcase = tcase_create("selection");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, all);
	tcase_add_test(tcase, by_processes);
	tcase_add_test(tcase, by_threads);
	tcase_add_test(tcase, about_processes);
	tcase_add_test(tcase, about_threads);
	tcase_add_test(tcase, whom);
	tcase_add_test(tcase, last);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
