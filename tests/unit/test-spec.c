// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Event text. The exclude bits expected of modifiers are those that perf 6.1 showed in
 * `perf record -vv -e cpu-clock:MODIFIERS`.
 */
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/spec.h"
#include "proto/macro.h"

#define U PP_EXCLUDE_USER
#define K PP_EXCLUDE_KERNEL
#define HV PP_EXCLUDE_HV
#define HOST PP_EXCLUDE_HOST
#define GUEST PP_EXCLUDE_GUEST
#define IDLE PP_EXCLUDE_IDLE

static struct pp_source source;
static char sentence[PP_SENTENCE_SIZE];

static int parse(const char *text)
{
	memset(&source, 0xaa, sizeof(source));
	*sentence = 0;
	return pp_source_parse(text, &source, sentence, sizeof(sentence));
}

/* It is refused with that error, untouched, and the sentence says `part`. */
static void expect_refusal(const char *text, int error, const char *part)
{
	static const struct pp_source untouched = { 0 };
	struct pp_source s = { 0 };
	int r;

	*sentence = 0;
	r = pp_source_parse(text, &s, sentence, sizeof(sentence));
	ck_assert_msg(r == error, "'%s': %d, not %d (%s)", text, r, error, sentence);
	ck_assert_msg(strstr(sentence, part) != NULL, "'%s': no '%s' in: %s", text, part, sentence);
	ck_assert_int_eq(memcmp(&s, &untouched, sizeof(s)), 0);
}

START_TEST(tracepoints)
{
	static const char *const cases[][3] = {
		{ "sched:sched_switch", "sched", "sched_switch" },
		{ "raw_syscalls:sys_enter", "raw_syscalls", "sys_enter" },
		{ "9p:9p_client_req", "9p", "9p_client_req" },
		{ "probe:vfs_read", "probe", "vfs_read" },
		{ "race:wait", "race", "wait" }, /* not the raw event "ace" */
		{ "xfs:x-y", "xfs", "x-y" },
		{ "syscalls:p", "syscalls", "p" }, /* nothing that it could be a typo of */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_source want = { .kind = PP_SOURCE_TRACEPOINT };

		strcpy(want.system, cases[i][1]);
		strcpy(want.tracepoint, cases[i][2]);
		ck_assert_msg(parse(cases[i][0]) == 0, "%s: %s", cases[i][0], sentence);
		ck_assert_int_eq(memcmp(&source, &want, sizeof(want)), 0);
	}
}
END_TEST

START_TEST(counters)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
		{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
		{ "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
		{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
		{ "stalled-cycles-frontend", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
		{ "idle-cycles-frontend", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
		{ "stalled-cycles-backend", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ "idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
		{ "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
		{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
		{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
		{ "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS },
		{ "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS },
		{ "cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pp_source want = { .kind = PP_SOURCE_SAMPLING,
						.type = cases[i].type,
						.config = cases[i].config,
						.exclude = GUEST };

		ck_assert_msg(parse(cases[i].text) == 0, "%s: %s", cases[i].text, sentence);
		ck_assert_int_eq(memcmp(&source, &want, sizeof(want)), 0);
	}
}
END_TEST

START_TEST(modifiers)
{
	static const struct {
		const char *text;
		uint32_t exclude, precise;
	} cases[] = {
		{ "cpu-clock:", GUEST, 0 },
		{ "cpu-clock:u", K | HV | GUEST, 0 },
		{ "cpu-clock:k", U | HV, 0 },
		{ "cpu-clock:h", U | K, 0 },
		{ "cpu-clock:uk", HV | GUEST, 0 },
		{ "cpu-clock:ukh", GUEST, 0 },
		{ "cpu-clock:H", GUEST, 0 },
		{ "cpu-clock:G", HOST, 0 },
		{ "cpu-clock:HG", 0, 0 },
		{ "cpu-clock:uG", K | HV | HOST, 0 },
		{ "cpu-clock:Gu", K | HV | HOST, 0 },
		{ "cpu-clock:hH", U | K | GUEST, 0 },
		{ "cpu-clock:I", IDLE, 0 },
		{ "cpu-clock:p", GUEST, 1 },
		{ "cpu-clock:pp", GUEST, 2 },
		{ "cpu-clock:ppp", GUEST, 3 },
		{ "cpu-clock:pup", K | HV | GUEST, 2 },
		{ "cpu-clock:pG", HOST, 1 },
		{ "cpu-clock:Gp", HOST, 1 },
		{ "cpu-clock:ukhHGIppp", IDLE, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_msg(parse(cases[i].text) == 0, "%s: %s", cases[i].text, sentence);
		ck_assert_msg(source.exclude == cases[i].exclude, "%s: exclude %#x, not %#x",
			      cases[i].text, source.exclude, cases[i].exclude);
		ck_assert_uint_eq(source.precise_ip, cases[i].precise);
	}
}
END_TEST

START_TEST(wrong_modifiers)
{
	expect_refusal("cpu-clock:pppp", -EINVAL, "at most ppp");
	expect_refusal("cpu-clock:uu", -EINVAL, "'u' stands twice");
	expect_refusal("cpu-clock:kuk", -EINVAL, "'k' stands twice");
	expect_refusal("cpu-clock:x", -EINVAL, "'x' in 'cpu-clock:x' is not a modifier");
	expect_refusal("cpu-clock:u:k", -EINVAL, "is not a modifier");
	expect_refusal("cpu-clock:P", -EOPNOTSUPP, "modifier 'P'");
	expect_refusal("cpu-clock:uD", -EOPNOTSUPP, "modifier 'D'");
}
END_TEST

/* Right in perf, not recorded: never called wrong. */
START_TEST(not_recorded_yet)
{
	expect_refusal("dummy", -EOPNOTSUPP, "never counts");
	expect_refusal("dummy:u", -EOPNOTSUPP, "never counts");
	expect_refusal("bpf-output", -EOPNOTSUPP, "never counts");
	expect_refusal("sched:*", -EOPNOTSUPP, "pattern");
	expect_refusal("sched:sched_?witch", -EOPNOTSUPP, "pattern");
	expect_refusal("sched:sched_[sw]*", -EOPNOTSUPP, "pattern");
	expect_refusal("cycles,instructions", -EOPNOTSUPP, "several");
	expect_refusal("{cycles,instructions}", -EOPNOTSUPP, "group");
	expect_refusal("{cycles,instructions}:S", -EOPNOTSUPP, "group");
	expect_refusal("cpu/event=0x3c,umask=0/", -EOPNOTSUPP, "PMU");
	expect_refusal("cycles//u", -EOPNOTSUPP, "PMU");
	expect_refusal("r1a8", -EOPNOTSUPP, "raw hardware");
	expect_refusal("r0x1A8:u", -EOPNOTSUPP, "raw hardware");
	expect_refusal("1:2", -EOPNOTSUPP, "numbers");
	expect_refusal("0:0x1", -EOPNOTSUPP, "numbers");
	expect_refusal("mem:0x1234:rw", -EOPNOTSUPP, "breakpoint");
	expect_refusal("mem:0x1234/4:w", -EOPNOTSUPP, "breakpoint");
	expect_refusal("kprobe:vfs_read", -EOPNOTSUPP, "probe");
	expect_refusal("kretprobe:vfs_read", -EOPNOTSUPP, "probe");
	expect_refusal("uprobe:/bin/sh:main", -EOPNOTSUPP, "probe");
	expect_refusal("uretprobe:/bin/sh:main", -EOPNOTSUPP, "probe");
	expect_refusal("L1-dcache-load-misses", -EOPNOTSUPP, "hardware cache");
	expect_refusal("L1-dcache-loads:u", -EOPNOTSUPP, "hardware cache");
	expect_refusal("LLC", -EOPNOTSUPP, "hardware cache");
	expect_refusal("dTLB-misses", -EOPNOTSUPP, "hardware cache");
	expect_refusal("node-prefetch-misses", -EOPNOTSUPP, "hardware cache");
	expect_refusal("branch-loads", -EOPNOTSUPP, "hardware cache");
	expect_refusal("L1-icache-speculative-read-miss", -EOPNOTSUPP, "hardware cache");
	expect_refusal("sched:sched_switch:k", -EOPNOTSUPP, "write 'sched:sched_switch'");
}
END_TEST

START_TEST(misspelt)
{
	expect_refusal("cylces", -EINVAL, "did you mean 'cycles'?");
	expect_refusal("cylces:u", -EINVAL, "did you mean 'cycles:u'?");
	expect_refusal("Cycles", -EINVAL, "did you mean 'cycles'?");
	expect_refusal("CPU-CLOCK", -EINVAL, "did you mean 'cpu-clock'?");
	expect_refusal("cpu_clock", -EINVAL, "did you mean 'cpu-clock'?");
	expect_refusal("branch-mises", -EINVAL, "did you mean 'branch-misses'?");
	expect_refusal("page-fault", -EINVAL, "did you mean 'page-faults'?");
	expect_refusal("contextswitches", -EINVAL, "did you mean 'context-switches'?");
	expect_refusal("L1-dcache-lods", -EINVAL, "is not an event");
	/* Resembling nothing: all that is known. */
	expect_refusal("sched_switch", -EINVAL, "write SYSTEM:NAME for a tracepoint");
	expect_refusal("xyzzy", -EINVAL, "cgroup-switches");
	ck_assert_ptr_null(strstr(sentence, "dummy"));
}
END_TEST

START_TEST(no_tracepoints)
{
	char text[300];

	expect_refusal(":", -EINVAL, "is not an event");
	expect_refusal("sched:", -EINVAL, "is not an event");
	expect_refusal(":sched_switch", -EINVAL, "not the name of a tracepoint");
	expect_refusal("sched:sched_switch:foo", -EINVAL, "not the name of a tracepoint");
	expect_refusal("sched:sched_switch:", -EINVAL, "not the name of a tracepoint");
	expect_refusal("sched:..", -EINVAL, "not the name of a tracepoint");
	expect_refusal("..:id", -EINVAL, "not the name of a tracepoint");
	expect_refusal("sched:a.b", -EINVAL, "not the name of a tracepoint");
	/* Names that fill their fields, and names that do not fit. */
	snprintf(text, sizeof(text), "%0127d:%0127d", 0, 0);
	memset(text, 'a', 127);
	ck_assert_int_eq(parse(text), 0);
	ck_assert_uint_eq(strlen(source.system), 127);
	ck_assert_uint_eq(strlen(source.tracepoint), 127);
	snprintf(text, sizeof(text), "sched:x%0127d", 0);
	expect_refusal(text, -EINVAL, "at most 127");
	snprintf(text, sizeof(text), "x%0127d:sched", 0);
	expect_refusal(text, -EINVAL, "at most 127");
}
END_TEST

START_TEST(text_that_is_none)
{
	char text[PP_EVENT_TEXT_SIZE + 1];

	expect_refusal("", -EINVAL, "the event is missing");
	expect_refusal(" cycles", -EINVAL, "byte 1");
	expect_refusal("cycles\n", -EINVAL, "byte 7");
	expect_refusal("cyc\033[1mles", -EINVAL, "byte 4");
	expect_refusal("cycl\xc3\xa9s", -EINVAL, "byte 5");
	expect_refusal("cycles\x7f", -EINVAL, "byte 7");
	memset(text, 'a', sizeof(text));
	text[PP_EVENT_TEXT_SIZE] = 0;
	expect_refusal(text, -EINVAL, "at most 1023");
	/* The longest that is looked at: the sentence stays one. */
	text[PP_EVENT_TEXT_SIZE - 1] = 0;
	expect_refusal(text, -EINVAL, "aaa...' is not an event");
	ck_assert_ptr_nonnull(strstr(sentence, "cgroup-switches"));
	/* A small buffer is not overrun. */
	memset(sentence, 'x', sizeof(sentence));
	ck_assert_int_eq(pp_source_parse("xyzzy", &source, sentence, 8), -EINVAL);
	ck_assert_str_eq(sentence, "'xyzzy'");
	ck_assert_int_eq(sentence[8], 'x');
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, tracepoints);
	tcase_add_test(t, counters);
	tcase_add_test(t, modifiers);
	tcase_add_test(t, wrong_modifiers);
	tcase_add_test(t, not_recorded_yet);
	tcase_add_test(t, misspelt);
	tcase_add_test(t, no_tracepoints);
	tcase_add_test(t, text_that_is_none);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
