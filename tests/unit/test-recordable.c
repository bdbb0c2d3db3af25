// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a machine can record, on machines that are made of files here; and the most similar of names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/events/recordable.h"
#include "proto/nearest.h"
#include "tests/unit/needs.h"

static char root[64], tracefs[96], devices[96];
static int answer;				/* to all attributes */
static struct perf_event_attr asked, asked_far; /* the last of a PMU's own type */
static struct recordables found;

static int sample(struct perf_event_attr *attr)
{
	if (attr->type >= PERF_TYPE_MAX && attr->config1)
		asked_far = *attr;
	else if (attr->type >= PERF_TYPE_MAX)
		asked = *attr;
	return attr->type == PERF_TYPE_HW_CACHE ? -ENOENT : answer;
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(path, 0755);
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void find(void)
{
	struct recordable_machine m = { .tracefs = tracefs, .devices = devices, .sample = sample };

	recordables_done(&found);
	ck_assert_int_eq(recordables_find(&m, &found), 0);
}

/* The kind of the event of that name, or -1. */
static int kind_of(const char *name)
{
	for (size_t i = 0; i < found.n; i++)
		if (!strcmp(found.all[i].name, name))
			return found.all[i].is_unsure ? RECORDABLE_KINDS : (int)found.all[i].kind;
	return -1;
}

static void setup(void)
{
	strcpy(root, "/tmp/test-recordable-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(tracefs, sizeof(tracefs), "%s/tracing/", root);
	snprintf(devices, sizeof(devices), "%s/devices", root);
	answer = 0;
	put("tracing/available_events",
	    "sched:sched_switch\nsched:sched_waking\nmine:open\nsynthetic:lat\n");
	put("tracing/dynamic_events", "p:mine/open vfs_open\ns:lat u64 lat;\n");
	put("devices/tracepoint/type", "2\n");
	put("devices/cpu/type", "4\n");
	put("devices/box/type", "17\n");
	put("devices/box/format/event", "config:0-3,8-11\n");
	put("devices/box/format/edge", "config:18\n");
	put("devices/box/format/far", "config1:0-7\n");
	put("devices/box/events/reads", "event=0xab,edge\n");
	put("devices/box/events/reads.unit", "MiB\n");
	put("devices/box/events/open", "event=?\n");
	put("devices/box/format/farther", "config2:4-11\n");
	put("devices/box/format/nowhere", "config9:0-7\n");
	put("devices/box/events/far", "far=0x15,farther=0x13\n");
	put("devices/box/events/nowhere", "nowhere=1\n");
}

static void teardown(void)
{
	char command[128];

	recordables_done(&found);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(all_kinds)
{
	find();
	ck_assert_int_eq(kind_of("cpu-clock"), RECORDABLE_SOFTWARE);
	ck_assert_int_eq(kind_of("cycles"), RECORDABLE_HARDWARE);
	ck_assert_int_eq(kind_of("cpu-cycles"), RECORDABLE_HARDWARE);
	ck_assert_int_eq(kind_of("sched:sched_switch"), RECORDABLE_TRACEPOINT);
	ck_assert_int_eq(kind_of("SYSTEM:GLOB"), RECORDABLE_FORM);
	ck_assert_int_eq(found.no_tracepoints, 0);
	/* dummy counts nothing; the kernel refused the cache events */
	ck_assert_int_eq(kind_of("dummy"), -1);
	ck_assert_int_eq(kind_of("LLC-loads"), -1);
	/* PMUs that are not there */
	ck_assert_int_eq(kind_of("kprobe:FUNCTION[+OFFSET][(ARGS)]"), -1);
}
END_TEST

/* Programs do not run on what others made through tracefs. */
START_TEST(made_events)
{
	find();
	ck_assert_int_eq(kind_of("sched:sched_waking"), RECORDABLE_TRACEPOINT);
	ck_assert_int_eq(kind_of("mine:open"), -1);
	ck_assert_int_eq(kind_of("synthetic:lat"), -1);
}
END_TEST

START_TEST(pmu_events)
{
	find();
	ck_assert_int_eq(kind_of("box/reads/"), RECORDABLE_PMU);
	ck_assert_uint_eq(asked.type, 17);
	ck_assert_uint_eq(asked.config, 0xa0b | 1 << 18);
	ck_assert_uint_ne(asked.sample_period, 0);
	ck_assert_int_eq(kind_of("box/reads.unit/"), -1);
	ck_assert_int_eq(kind_of("box/open/"), -1);
	ck_assert_int_eq(kind_of("box/nowhere/"), -1);
	ck_assert_int_eq(kind_of("box/far/"), RECORDABLE_PMU);
	ck_assert_uint_eq(asked_far.config, 0);
	ck_assert_uint_eq(asked_far.config1, 0x15);
	ck_assert_uint_eq(asked_far.config2, 0x130);
}
END_TEST

START_TEST(refused)
{
	answer = -EOPNOTSUPP;
	find();
	ck_assert_int_eq(kind_of("cpu-clock"), RECORDABLE_SOFTWARE);
	ck_assert_int_eq(kind_of("cycles"), -1);
	ck_assert_int_eq(kind_of("box/reads/"), -1);
	ck_assert(!found.some_unsure);
}
END_TEST

/* An ordinary user: what cannot be asked is unsure, and only if there is a processor's PMU. */
START_TEST(forbidden)
{
	answer = -EACCES;
	put("tracing/available_events", "");
	find();
	ck_assert_int_eq(kind_of("cycles"), RECORDABLE_KINDS);
	ck_assert(found.some_unsure);
	put("devices/cpu/type", "99\n");
	find();
	ck_assert_int_eq(kind_of("cycles"), -1);
	ck_assert(!found.some_unsure);
	strcpy(tracefs, "/nowhere/");
	find();
	ck_assert_int_eq(found.no_tracepoints, -ENOENT);
}
END_TEST

#define expect_nearest(text, want)                                  \
	do {                                                        \
		const char *_n = recordables_nearest(&found, text); \
		ck_assert_pstr_eq(_n, want);                        \
	} while (0)

START_TEST(nearest_event)
{
	find();
	expect_nearest("sched:sched_swich", "sched:sched_switch");
	expect_nearest("shced:sched_switch", "sched:sched_switch");
	expect_nearest("sched:Sched_wakign", "sched:sched_waking");
	expect_nearest("sched:sched_switch", NULL);
	/* the system alone is no similarity */
	expect_nearest("sched:nosuch", NULL);
	expect_nearest("sched:x", NULL);
	expect_nearest("pu-clock", "cpu-clock");
	expect_nearest("", NULL);
}
END_TEST

/* counts: how many letters may differ; the texts may have any length. */
START_TEST(nearest_name)
{
	static const struct {
		const char *text, *name;
		bool is_near;
	} pairs[] = {
		{ "lsit", "list", true },	 { "lst", "list", true },
		{ "lists", "list", true },	 { "li", "list", false },
		{ "tsil", "list", false },	 { "LIST", "list", true },
		{ "shced", "sched", true },	 { "hsced", "sched", false },
		{ "shecd", "sched", false },	 { "snaphsto", "snapshot", true },
		{ "nosuch", "snapshot", false },
	};
	char longest[3 * PP_NEAREST_SIZE];
	struct pp_nearest s;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		pp_nearest_begin(&s, pairs[i].text, strlen(pairs[i].text));
		pp_nearest_consider(&s, pairs[i].name);
		ck_assert_msg(!!s.best == pairs[i].is_near, "%s, %s", pairs[i].text, pairs[i].name);
	}
	pp_nearest_begin(&s, "snapshots", 9);
	pp_nearest_consider(&s, "snapshut");
	pp_nearest_consider(&s, "snapshot");
	pp_nearest_consider(&s, "snapshit");
	ck_assert_str_eq(s.best, "snapshot");
	memset(longest, 'a', sizeof(longest));
	for (size_t n = PP_NEAREST_SIZE - 3; n < PP_NEAREST_SIZE + 3; n++) {
		longest[n] = '\0';
		pp_nearest_begin(&s, longest, n);
		longest[n] = 'a';
		longest[sizeof(longest) - 1] = '\0';
		pp_nearest_consider(&s, longest);
		ck_assert_ptr_null(s.best);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recordable");
	TCase *machine = tcase_create("machine"), *names = tcase_create("names");

	tcase_add_checked_fixture(machine, setup, teardown);
	tcase_add_test(machine, all_kinds);
	tcase_add_test(machine, made_events);
	tcase_add_test(machine, pmu_events);
	tcase_add_test(machine, refused);
	tcase_add_test(machine, forbidden);
	tcase_add_test(machine, nearest_event);
	tcase_add_test(names, nearest_name);
	suite_add_tcase(suite, machine);
	suite_add_tcase(suite, names);
	return run_suite(suite);
}
