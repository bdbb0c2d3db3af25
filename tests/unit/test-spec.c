// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Event text. The expected exclude bits of modifiers are those that perf 6.1 shows in `perf record
 * -vv -e cpu-clock:MODIFIERS`.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/broker/syntax/spec.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define U PP_EXCLUDE_USER
#define K PP_EXCLUDE_KERNEL
#define HV PP_EXCLUDE_HV
#define HOST PP_EXCLUDE_HOST
#define GUEST PP_EXCLUDE_GUEST
#define IDLE PP_EXCLUDE_IDLE

static struct pp_source sources[PP_TERMS_MAX];
static char sentence[PP_SENTENCE_SIZE];

static int parse(const char *text)
{
	memset(sources, 0xaa, sizeof(sources));
	*sentence = 0;
	return pp_spec_parse(text, sources, PP_TERMS_MAX, sentence, sizeof(sentence));
}

/* The text is exactly this one source, and the engine accepts it. */
static void expect(const char *text, const struct pp_source *source)
{
	static struct pp_parsed parsed = { .n_sources = 1 };
	struct pp_source want = *source;

	ck_assert_msg(parse(text) == 1, "%s: %s", text, sentence);
	strcpy(want.text, text);
	ck_assert_msg(!memcmp(sources, &want, sizeof(want)), "%s", text);
	parsed.sources[0] = sources[0];
	ck_assert_msg(pp_parsed_check(&parsed, true) == 0, "%s", text);
}

/* The parser refuses it with that error, changes nothing, and the message contains `part`. */
static void expect_refusal(const char *text, int error, const char *part)
{
	int r = parse(text);

	ck_assert_msg(r == error, "'%s': %d, not %d (%s)", text, r, error, sentence);
	ck_assert_msg(strstr(sentence, part) != NULL, "'%s': no '%s' in: %s", text, part, sentence);
	for (size_t i = 0; i < sizeof(sources); i++)
		ck_assert_int_eq(((unsigned char *)sources)[i], 0xaa);
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
		{ "syscalls:p", "syscalls", "p" }, /* similar to no event */
		{ "sched:*", "sched", "*" },
		{ "sched:sched_[sw]?itch*", "sched", "sched_[sw]?itch*" },
		{ "*:*_enter", "*", "*_enter" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_source want = { .kind = PP_SOURCE_TRACEPOINT };

		strcpy(want.system, cases[i][1]);
		strcpy(want.name, cases[i][2]);
		expect(cases[i][0], &want);
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
		{ "r1a8", PERF_TYPE_RAW, 0x1a8 },
		{ "r0x1A8", PERF_TYPE_RAW, 0x1a8 },
		{ "rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX },
		{ "L1-dcache-loads", PERF_TYPE_HW_CACHE, 0 },
		{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000 },
		{ "L1-dcache-stores", PERF_TYPE_HW_CACHE, 0x100 },
		{ "L1-dcache-miss-write", PERF_TYPE_HW_CACHE, 0x10100 },
		{ "L1-dcache", PERF_TYPE_HW_CACHE, 0 },
		{ "l1d-prefetches", PERF_TYPE_HW_CACHE, 0x200 },
		{ "L1-icache-speculative-read-miss", PERF_TYPE_HW_CACHE, 0x10201 },
		{ "LLC-loads", PERF_TYPE_HW_CACHE, 0x2 },
		{ "LLC-store-misses", PERF_TYPE_HW_CACHE, 0x10102 },
		{ "dTLB-store-misses", PERF_TYPE_HW_CACHE, 0x10103 },
		{ "dTLB-misses", PERF_TYPE_HW_CACHE, 0x10003 },
		{ "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10004 },
		{ "branch-loads", PERF_TYPE_HW_CACHE, 0x5 },
		{ "node-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10206 },
		{ "cycles//", PERF_TYPE_HARDWARE, 0 },
		{ "LLC-loads/name=x/", PERF_TYPE_HW_CACHE, 0x2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pp_source want = { .kind = PP_SOURCE_SAMPLING,
						.type = cases[i].type,
						.config = cases[i].config,
						.exclude = GUEST };

		expect(cases[i].text, &want);
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
		ck_assert_msg(parse(cases[i].text) == 1, "%s: %s", cases[i].text, sentence);
		ck_assert_msg(sources[0].exclude == cases[i].exclude, "%s: exclude %#x, not %#x",
			      cases[i].text, sources[0].exclude, cases[i].exclude);
		ck_assert_uint_eq(sources[0].precise_ip, cases[i].precise);
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

/* perf's values of attr.bp_type, config1 and config2. */
START_TEST(breakpoints)
{
	static const struct {
		const char *text;
		uint32_t type, exclude;
		uint64_t address, length;
	} cases[] = {
		{ "mem:0x1000", 3, GUEST, 0x1000, 4 },
		{ "mem:4096:rw", 3, GUEST, 0x1000, 4 },
		{ "mem:0x1000:wr", 3, GUEST, 0x1000, 4 },
		{ "mem:0xffffffff81000008/8:w", 2, GUEST, 0xffffffff81000008, 8 },
		{ "mem:0x1001/1:r", 1, GUEST, 0x1001, 1 },
		{ "mem:0x1001:x", 4, GUEST, 0x1001, sizeof(long) },
		{ "mem:0x1002/2:w:u", 2, K | HV | GUEST, 0x1002, 2 },
		{ "mem:0x1000:k", 3, U | HV, 0x1000, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pp_source want = { .kind = PP_SOURCE_SAMPLING,
						.type = PERF_TYPE_BREAKPOINT,
						.config1 = cases[i].address,
						.config2 = cases[i].length,
						.bp_type = cases[i].type,
						.exclude = cases[i].exclude };

		expect(cases[i].text, &want);
	}
	expect_refusal("mem:", -EINVAL, "has no address");
	expect_refusal("mem:jiffies:w", -EINVAL, "has no address");
	expect_refusal("mem:0x1000/3:w", -EINVAL, "1, 2, 4 and 8");
	expect_refusal("mem:0x1000/16:w", -EINVAL, "1, 2, 4 and 8");
	expect_refusal("mem:0x1000/:w", -EINVAL, "1, 2, 4 and 8");
	expect_refusal("mem:0x1000/4:x", -EINVAL, "leave it out");
	expect_refusal("mem:0x1000:rwx", -EINVAL, "'rwx' is an access");
	expect_refusal("mem:0x1000:w:z", -EINVAL, "'z' in");
	expect_refusal("mem:0x1000:w:u:k", -EINVAL, "is not a modifier");
#ifdef __x86_64__
	expect_refusal("mem:0x1001/4:w", -EINVAL, "not a multiple");
#endif
}
END_TEST

START_TEST(lists)
{
	static const char text[] =
		"cycles:u,sched:*,mem:0x8/8:w,LLC-loads//k,kprobe:f(arg1,arg2),r1a8";
	static const char *const parts[] = {
		"cycles:u", "sched:*", "mem:0x8/8:w", "LLC-loads//k", "kprobe:f(arg1,arg2)", "r1a8"
	};
	char many[256] = "cs";

	ck_assert_msg(parse(text) == 6, "%s", sentence);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		ck_assert_str_eq(sources[i].text, parts[i]);
	ck_assert_int_eq(sources[5].type, PERF_TYPE_RAW);

	for (int i = 1; i < PP_TERMS_MAX; i++)
		strcat(many, ",cs");
	ck_assert_int_eq(parse(many), PP_TERMS_MAX);
	strcat(many, ",faults");
	expect_refusal(many, -E2BIG, "too long at 'faults'");
	ck_assert_int_eq(pp_spec_parse("cs,cs", sources, 1, sentence, sizeof(sentence)), -E2BIG);
	expect_refusal("cs,", -EINVAL, "missing at byte 4");
	expect_refusal(",cs", -EINVAL, "missing at byte 1");
	expect_refusal("cs,,cs", -EINVAL, "missing at byte 4");
	expect_refusal("cs,cylces,faults", -EINVAL, "'cylces' is not an event");
	expect_refusal("cs,cycles/config=1,faults", -EINVAL, "lacks the slash");
}
END_TEST

/* Terms of events beside one that traces. */
START_TEST(beside)
{
	ck_assert_int_eq(
		parse("sched:sched_switch/aux-action=pause/,cpu-clock/aux-sample-size=4096/u,"
		      "syscalls:sys_enter_sync/aux-sample-size=61440,aux-action=resume/,cs"),
		4);
	ck_assert_uint_eq(sources[0].kind, PP_SOURCE_TRACEPOINT);
	ck_assert_str_eq(sources[0].system, "sched");
	ck_assert_str_eq(sources[0].name, "sched_switch");
	ck_assert_str_eq(sources[0].text, "sched:sched_switch/aux-action=pause/");
	ck_assert_uint_eq(sources[0].aux_action, PP_AUX_PAUSE);
	ck_assert_uint_eq(sources[0].aux_sample, 0);
	ck_assert_uint_eq(sources[1].kind, PP_SOURCE_SAMPLING);
	ck_assert_uint_eq(sources[1].aux_sample, 4096);
	ck_assert_uint_eq(sources[1].aux_action, 0);
	ck_assert_uint_eq(sources[1].exclude & PP_EXCLUDE_KERNEL, PP_EXCLUDE_KERNEL);
	ck_assert_uint_eq(sources[2].aux_sample, 61440);
	ck_assert_uint_eq(sources[2].aux_action, PP_AUX_RESUME);
	ck_assert_uint_eq(sources[3].aux_action, 0);
	expect_refusal("cs/aux-sample-size=4/", -EINVAL, "a multiple of 8, up to 61440");
	expect_refusal("cs/aux-sample-size=0/", -EINVAL, "a multiple of 8");
	expect_refusal("cs/aux-sample-size=61448/", -EINVAL, "a multiple of 8");
	expect_refusal("cs/aux-sample-size/", -EINVAL, "a multiple of 8");
	expect_refusal("cs/aux-sample-size=x/", -EINVAL, "a multiple of 8");
	expect_refusal("cs/aux-action=start-paused/", -EINVAL, "can pause or resume it");
	expect_refusal("cs/aux-action/", -EINVAL, "can pause or resume it");
	expect_refusal("a:b/aux-action=stop/", -EINVAL, "can pause or resume it");
	expect_refusal("a:b/period=3/", -EINVAL, "'period' in 'a:b/period=3/' is no term");
	expect_refusal("a:b//", -EINVAL, "is no term of a tracepoint");
	expect_refusal("a:b/aux-action=pause", -EINVAL, "does not end behind its terms");
	expect_refusal("a:b/aux-action=pause/u", -EINVAL, "does not end behind its terms");
	expect_refusal("a:b/aux-action=pause/x/", -EINVAL, "does not end behind its terms");
	expect_refusal("a:b$/aux-action=pause/", -EINVAL, "not the name of a tracepoint");
}
END_TEST

/* Valid in perf but not recorded: the message never calls it wrong. */
START_TEST(not_recorded)
{
	expect_refusal("dummy", -EOPNOTSUPP, "never counts");
	expect_refusal("dummy:u", -EOPNOTSUPP, "never counts");
	expect_refusal("bpf-output", -EOPNOTSUPP, "never counts");
	expect_refusal("{cycles,instructions}", -EOPNOTSUPP, "group");
	expect_refusal("{cycles,instructions}:S", -EOPNOTSUPP, "group");
	expect_refusal("1:2", -EOPNOTSUPP, "numbers");
	expect_refusal("0:0x1", -EOPNOTSUPP, "numbers");
	expect_refusal("duration_time", -EOPNOTSUPP, "perf's own reading");
	expect_refusal("user_time:u", -EOPNOTSUPP, "perf's own reading");
	expect_refusal("branch_misprediction_ratio", -EOPNOTSUPP, "metrics are");
	expect_refusal("mem_load_retired.l3_miss", -EOPNOTSUPP, "events of its tables");
	expect_refusal("sched_switch", -EOPNOTSUPP, "write SYSTEM:NAME for a tracepoint");
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
	/* Similar to nothing: the message lists all known ones. */
	expect_refusal("iTLB-stores", -EINVAL, "that this cache lacks");
	expect_refusal("L1-icache-store-misses", -EINVAL, "that this cache lacks");
	expect_refusal("r12345678123456789", -EINVAL, "at most 16 digits");
	expect_refusal("sched/sched_switch", -EINVAL, "lacks the slash");
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
	expect_refusal("sched:*.b", -EINVAL, "not the name of a tracepoint");
	/* Names that fill their fields, and names that do not fit. */
	snprintf(text, sizeof(text), "%0127d:%0127d", 0, 0);
	memset(text, 'a', 127);
	ck_assert_int_eq(parse(text), 1);
	ck_assert_uint_eq(strlen(sources[0].system), 127);
	ck_assert_uint_eq(strlen(sources[0].name), 127);
	ck_assert_uint_eq(strlen(sources[0].text), 255);
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
	/* The longest accepted text: the message stays one sentence. */
	text[PP_EVENT_TEXT_SIZE - 1] = 0;
	expect_refusal(text, -EINVAL, "aaa...' is not an event");
	ck_assert_ptr_nonnull(strstr(sentence, "cgroup-switches"));
	/* A small buffer does not overflow. */
	memset(sentence, 'x', sizeof(sentence));
	ck_assert_int_eq(pp_spec_parse("xyzzy", sources, 1, sentence, 8), -EINVAL);
	ck_assert_str_eq(sentence, "'xyzzy'");
	ck_assert_int_eq(sentence[8], 'x');
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");

	tcase_add_test(t, tracepoints);
	tcase_add_test(t, counters);
	tcase_add_test(t, modifiers);
	tcase_add_test(t, wrong_modifiers);
	tcase_add_test(t, breakpoints);
	tcase_add_test(t, lists);
	tcase_add_test(t, beside);
	tcase_add_test(t, not_recorded);
	tcase_add_test(t, misspelt);
	tcase_add_test(t, no_tracepoints);
	tcase_add_test(t, text_that_is_none);
	suite_add_tcase(s, t);
	return run_suite(s);
}
