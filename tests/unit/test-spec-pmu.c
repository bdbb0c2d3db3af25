// SPDX-License-Identifier: LGPL-2.1-or-later
/* PMUs in event text, in a made-up folder like those of real machines. */
#include <errno.h>
#include <ftw.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "tests/unit/needs.h"

static struct pp_source sources[PP_TERMS_MAX];
static char sentence[PP_SENTENCE_SIZE];
static char pmus[64];

static const char *const files[][2] = {
	{ "cpu/type", "4" },
	{ "cpu/format/event", "config:0-7,32-35" },
	{ "cpu/format/umask", "config:8-15" },
	{ "cpu/format/edge", "config:18" },
	{ "cpu/format/ldlat", "config1:0-15" },
	{ "cpu/format/mask", "config2:4" },
	{ "cpu/format/later", "config3:0-7" },
	{ "cpu/events/cpu-cycles", "event=0x3c" },
	{ "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" },
	{ "cpu/events/open", "event=0x2,umask=?" },
	{ "cpu/events/broken", "event=0x2,nothing=1" },
	{ "cpu_atom/type", "10" },
	{ "cpu_atom/cpus", "4-7" },
	{ "cpu_atom/format/event", "config:0-7" },
	{ "uncore_imc_0/type", "20" },
	{ "uncore_imc_0/cpumask", "0" },
	{ "uncore_imc_0/format/event", "config:0-7" },
	{ "uncore_imc_0/events/cas-reads", "event=0x4" },
	{ "uncore_imc_0/events/cas-reads.scale", "6.1e-5" },
	{ "uncore_imc_10/type", "22" },
	{ "uncore_imc_10/cpumask", "0" },
	{ "uncore_imc_10/format/event", "config:0-7" },
	{ "uncore_imc_10/events/cas-reads", "event=0x5" },
	{ "power/type", "30" },
	{ "arm_spe_0/type", "40" },
	{ "arm_spe_0/cpumask", "0-3" },
	{ "arm_spe_0/format/ts_enable", "config:0" },
	{ "arm_spe_0/format/load_filter", "config:2" },
	/* as on Skylake, with fewer periods */
	{ "intel_pt/type", "41" },
	{ "intel_pt/format/pt", "config:0" },
	{ "intel_pt/format/cyc", "config:1" },
	{ "intel_pt/format/mtc", "config:9" },
	{ "intel_pt/format/tsc", "config:10" },
	{ "intel_pt/format/branch", "config:13" },
	{ "intel_pt/format/mtc_period", "config:14-17" },
	{ "intel_pt/format/psb_period", "config:24-27" },
	{ "intel_pt/caps/mtc", "1" },
	{ "intel_pt/caps/psb_cyc", "1" },
	{ "intel_pt/caps/mtc_periods", "249" },
	{ "intel_pt/caps/psb_periods", "21" },
	{ "intel_bts/type", "42" },
	{ "power/cpumask", "0" },
	{ "software/type", "1" },
	{ "uprobe/type", "8" },
	{ "tracepoint/type", "2" },
	{ "typeless/format/event", "config:0-7" },
};

static void make_pmus(void)
{
	strcpy(pmus, "/tmp/perfpersist-pmus-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(pmus));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[256];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", pmus, files[i][0]);
		for (char *s = path + strlen(pmus) + 1; (s = strchr(s, '/')); *s++ = '/') {
			*s = 0;
			mkdir(path, 0755);
		}
		f = fopen(path, "we");
		ck_assert_ptr_nonnull(f);
		fprintf(f, "%s\n", files[i][1]);
		fclose(f);
	}
}

static int drop(const char *path, const struct stat *st _unused_, int type _unused_,
		struct FTW *ftw _unused_)
{
	return remove(path);
}

static void drop_pmus(void)
{
	nftw(pmus, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static int parse(const char *text)
{
	memset(sources, 0xaa, sizeof(sources));
	*sentence = 0;
	return spec_parse(pmus, text, sources, PP_TERMS_MAX, sentence, sizeof(sentence));
}

static void expect_refusal(const char *text, int error, const char *part)
{
	int r = parse(text);

	ck_assert_msg(r == error, "'%s': %d, not %d (%s)", text, r, error, sentence);
	ck_assert_msg(strstr(sentence, part) != NULL, "'%s': no '%s' in: %s", text, part, sentence);
}

#define GUEST PP_EXCLUDE_GUEST
#define NOT_USER (PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV | GUEST)

START_TEST(terms)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config, config1, config2;
		uint32_t exclude, any_cpu;
	} cases[] = {
		{ "cpu/event=0x3c,umask=0/", 4, 0x3c, 0, 0, GUEST, 0 },
		{ "cpu/event=0x13c,umask=2,edge/u", 4, 0x10004023cULL, 0, 0, NOT_USER, 0 },
		{ "cpu/event=60/", 4, 60, 0, 0, GUEST, 0 },
		{ "cpu/edge=0/", 4, 0, 0, 0, GUEST, 0 },
		{ "cpu/cpu-cycles/", 4, 0x3c, 0, 0, GUEST, 0 },
		{ "cpu/cpu-cycles,edge/:u", 4, 0x4003c, 0, 0, NOT_USER, 0 },
		{ "cpu/mem-loads,mask/", 4, 0x1cd, 3, 0x10, GUEST, 0 },
		{ "cpu/open,umask=0x10/", 4, 0x1002, 0, 0, GUEST, 0 },
		{ "cpu/config=0x1a8,config1=2,config2=3/", 4, 0x1a8, 2, 3, GUEST, 0 },
		{ "cpu/r1a8,name=mine/", 4, 0x1a8, 0, 0, GUEST, 0 },
		{ "cpu//", 4, 0, 0, 0, GUEST, 0 },
		{ "cpu_atom/event=1/", 10, 1, 0, 0, GUEST, 0 },
		{ "power/config=2/", 30, 2, 0, 0, 0, 1 },
		{ "power/config=2/k", 30, 2, 0, 0, PP_EXCLUDE_USER | PP_EXCLUDE_HV, 1 },
		{ "software/config=0x3/", 1, 3, 0, 0, GUEST, 0 },
		{ "mem-loads:u", 4, 0x1cd, 3, 0, NOT_USER, 0 },
		{ "uncore_imc_10/cas-reads/", 22, 5, 0, 0, 0, 1 },
		/* perf record's own terms, unless others are given */
		{ "arm_spe_0/load_filter=1/", 40, 5, 0, 0, 0, 1 },
		{ "arm_spe_0/ts_enable=0/", 40, 0, 0, 0, 0, 1 },
		{ "arm_spe_0//k", 40, 1, 0, 0, PP_EXCLUDE_USER | PP_EXCLUDE_HV, 1 },
		{ "intel_pt//", 41, 0xe601, 0, 0, 0, 0 },
		{ "intel_pt/tsc=0,mtc_period=6,cyc/", 41, 0x1a203, 0, 0, 0, 0 },
		{ "intel_bts//", 42, 0, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_source want = {
			.kind = cases[i].type >= 40 ? PP_SOURCE_AUX : PP_SOURCE_SAMPLING,
			.type = cases[i].type,
			.config = cases[i].config,
			.config1 = cases[i].config1,
			.config2 = cases[i].config2,
			.exclude = cases[i].exclude,
			.any_cpu = cases[i].any_cpu,
		};
		static struct pp_parsed parsed = { .n_sources = 1 };

		strcpy(want.text, cases[i].text);
		ck_assert_msg(parse(cases[i].text) == 1, "%s: %s", cases[i].text, sentence);
		ck_assert_msg(!memcmp(sources, &want, sizeof(want)), "%s: %#llx", cases[i].text,
			      (unsigned long long)sources[0].config);
		parsed.sources[0] = sources[0];
		ck_assert_msg(pp_parsed_check(&parsed, true) == 0, "%s", cases[i].text);
	}
}
END_TEST

/* A name can stand for several PMUs. */
START_TEST(several)
{
	static const char *const texts[] = { "imc/cas-reads/u", "uncore_imc/cas-reads/u",
					     "uncore_imc_*/cas-reads/u" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		ck_assert_msg(parse(texts[i]) == 2, "%s: %s", texts[i], sentence);
		ck_assert_uint_eq(sources[0].type, 20);
		ck_assert_uint_eq(sources[0].config, 4);
		ck_assert_str_eq(sources[0].text, "uncore_imc_0/cas-reads/u");
		ck_assert_uint_eq(sources[1].type, 22);
		ck_assert_uint_eq(sources[1].config, 5);
		ck_assert_str_eq(sources[1].text, "uncore_imc_10/cas-reads/u");
	}
	ck_assert_int_eq(parse("cas-reads,cs"), 3);
	ck_assert_str_eq(sources[1].text, "uncore_imc_10/cas-reads/");
	ck_assert_str_eq(sources[2].text, "cs");
}
END_TEST

START_TEST(refusals)
{
	expect_refusal(
		"nope/event=1/", -ENOENT,
		"PMU 'nope', which this machine lacks: it has arm_spe_0, cpu, cpu_atom, intel_bts, intel_pt, power, software, "
		"typeless, uncore_imc_0, uncore_imc_10");
	expect_refusal(
		"cpu/nope/", -ENOENT,
		"PMU 'cpu' has no event or term 'nope': its terms are config, edge, event, "
		"later, ldlat, mask, umask; its events are broken, cpu-cycles, mem-loads, open");
	expect_refusal("uncore_imc_0/nope=1/", -ENOENT, "its events are cas-reads");
	ck_assert_ptr_null(strstr(sentence, "scale"));
	expect_refusal("power/nope/", -ENOENT, "its terms are config, none; its events are none");
	expect_refusal("cpu/broken/", -ENOENT, "'nothing'");
	expect_refusal("cpu/open/", -EINVAL, "add umask=VALUE");
	expect_refusal("cpu/event=0x1000/", -EINVAL, "the value of 'event'");
	expect_refusal("cpu/edge=2/", -EINVAL, "too large: its bits are 18");
	expect_refusal("cpu/event=x/", -EINVAL, "is no number");
	expect_refusal("cpu/later=1/", -EOPNOTSUPP, "config3:0-7");
	expect_refusal("cpu/config3=1/", -EOPNOTSUPP, "config3");
	expect_refusal("cpu/config/", -EINVAL, "config=0x1a8");
	expect_refusal("cpu/event=1,/", -EINVAL, "empty term");
	expect_refusal("cpu/,event=1/", -EINVAL, "empty term");
	expect_refusal("cpu/=1/", -EINVAL, "empty term");
	expect_refusal("cpu/period=1000/", -EOPNOTSUPP, "as an option (-c)");
	expect_refusal("cycles/freq=99/", -EOPNOTSUPP, "as an option (-F)");
	expect_refusal("cycles/event=1/", -EINVAL, "is no term of a counter's name");
	expect_refusal("cpu/event=1", -EINVAL, "lacks the slash");
	expect_refusal("cpu/event=1/z", -EINVAL, "'z' in");
	expect_refusal("/event=1/", -EINVAL, "does not begin with the name of a PMU");
	expect_refusal("../event=1/", -ENOENT, "lacks");
	expect_refusal("cpu/../", -ENOENT, "no event or term");
	expect_refusal("uprobe/retprobe/", -EOPNOTSUPP, "write uprobe:PATH:FUNCTION");
	expect_refusal("tracepoint/config=1/", -EOPNOTSUPP, "write SYSTEM:NAME");
	expect_refusal("software/config=9/", -EOPNOTSUPP, "never counts");
	expect_refusal("typeless/event=1/", -ENOENT, "cannot be asked for its type");
	expect_refusal("intel_pt/aux-sample-size=8/", -EINVAL, "takes no samples of it");
	expect_refusal("intel_pt/aux-action=pause/", -EINVAL, "can start-paused");
	expect_refusal("cpu/aux-action=start-paused/", -EINVAL, "can pause or resume it");
	ck_assert_int_eq(parse("intel_pt/aux-action=start-paused/,cpu/event=1,aux-sample-size=8/"),
			 2);
	ck_assert_uint_eq(sources[0].aux_action, PP_AUX_START_PAUSED);
	ck_assert_uint_eq(sources[0].config, 0xe601);
	ck_assert_uint_eq(sources[1].aux_sample, 8);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec-pmu");
	TCase *t = tcase_create("spec-pmu");

	tcase_add_checked_fixture(t, make_pmus, drop_pmus);
	tcase_add_test(t, terms);
	tcase_add_test(t, several);
	tcase_add_test(t, refusals);
	suite_add_tcase(s, t);
	return run_suite(s);
}
