// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of machines with many CPUs, on this one: the engine believes in CPUs that do not exist,
 * and makes rings, programs and files for all of them. The real CPUs' rings get records; the test
 * prints the costs.
 *
 * Tracepoints only: their programs run on every CPU, without a perf event on any.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/broker/handout/tree.h"
#include "daemon/broker/syntax/spec.h"
#include "daemon/cpus.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/log.h"
#include "proto/macro.h"

#include "needs.h" /* after these, because check.h has a macro fail() */

#define BROKER 61999
#define TIMES 9 /* for a median, if there is time for one */
#define RECORDS 10

static char registry[] = "/tmp/perfpersist-cpus-XXXXXX";

/* ── CPUs that are not there ────────────────────────────────────────────────────────────── */

static const struct machine {
	const char *name;
	unsigned step; /* the step between CPU numbers */
	unsigned rings, possible;
} machines[] = {
	{ "the CPUs that there are", 1, 0, 0 },
	{ "CPUs 0-255", 1, 256, 256 },
	{ "256 CPUs whose numbers are far apart", 16, 256, 4096 },
	{ "CPUs 0-1023", 1, 1024, 1024 },
};
static const struct machine *machine;

static int real_cpus(struct pp_cpumask *ret)
{
	cpu_set_t set;
	int n = 0;

	*ret = (struct pp_cpumask){};
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			ret->bits[cpu / 64] |= 1ULL << cpu % 64;
			n++;
		}
	return n;
}

/* These override those of daemon/cpus.c. */
int pp_cpus_read(const char *which _unused_, struct pp_cpumask *ret)
{
	int n = real_cpus(ret);

	for (unsigned cpu = 0; n < (int)machine->rings; cpu += machine->step) {
		n += !pp_cpumask_test(ret, cpu);
		ret->bits[cpu / 64] |= 1ULL << cpu % 64;
	}
	return 0;
}

int pp_cpus_possible(void)
{
	struct pp_cpumask real;
	int highest = -1;

	real_cpus(&real);
	PP_CPUMASK_FOREACH(cpu, &real)
	highest = (int)cpu;
	return MAX(highest + 1, (int)machine->possible);
}

/* ── an event ───────────────────────────────────────────────────────────────────────────── */

static struct pp_spec spec;
static struct pp_parsed parsed;
static struct failure failure;

static void ask(const char *event)
{
	char sentence[PP_SENTENCE_SIZE];
	int n;

	memset(&spec, 0, sizeof(spec));
	memset(&parsed, 0, sizeof(parsed));
	strcpy(spec.ns, "many");
	strcpy(spec.name, "event");
	snprintf(spec.event, sizeof(spec.event), "%s", event);
	spec.data_size = 65536;
	spec.flags = PP_EVENT_ALL_CPUS;
	spec.mode = 0640;
	n = pp_spec_parse(event, parsed.sources, PP_TERMS_MAX, sentence, sizeof(sentence));
	ck_assert_msg(n > 0, "%s", sentence);
	parsed.n_sources = n;
}

static struct pp_event create(void)
{
	struct pp_event e;
	int r = event_create(&spec, &parsed, NULL, 0, NULL, NULL, BROKER, &e, &failure);

	ck_assert_msg(r == 0, "%s", failure.sentence);
	return e;
}

static void delete (uint64_t id)
{
	struct pp_orphans orphans;
	struct pp_event e;
	int r = names_delete(id, NULL, BROKER, &e, &orphans, &failure);

	ck_assert_msg(r == 0, "%s", failure.sentence);
	reaper_wait(INT_MAX);
}

/* ── what is in it ──────────────────────────────────────────────────────────────────────── */

/* Fires on each real CPU an event that nothing else fires all the time. */
static void make_records(void)
{
	struct pp_cpumask real;
	cpu_set_t all;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	real_cpus(&real);
	PP_CPUMASK_FOREACH(cpu, &real)
	{
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		for (int i = 0; i < RECORDS; i++) {
			int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

			ck_assert_int_eq(write(fd, "100", 3), 3);
			close(fd);
		}
	}
	ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* The broker's total for many events equals the file's last line. */
static void check_totals(const struct pp_event *e, const char *total)
{
	_cleanup_close_ int program = tree_totals_open(".");
	struct tree_stat told;
	char line[256];

	ck_assert_int_eq(tree_totals_read(program, e->origin, e->set, &told), 0);
	snprintf(line, sizeof(line), "total records=%ju bytes=%ju limited=%ju missed=%ju",
		 (uintmax_t)told.records, (uintmax_t)told.bytes, (uintmax_t)told.limited,
		 (uintmax_t)told.missed);
	ck_assert_int_eq(strncmp(total, line, strlen(line)), 0);
	ck_assert_int_eq(told.missed_unknown,
			 total[strlen(line)] == '+' ? PP_MISSED_AT_LEAST : PP_MISSED_COUNTED);
}

/* The file has a line for each ring, or tells how many have none, and records on the real CPUs. */
static void check_stat(const struct pp_event *e)
{
	_cleanup_fclose_ FILE *f = fopen("many/event/stat", "re");
	struct pp_cpumask real;
	unsigned lines = 0, others = 0, cpu, records;
	char line[512];

	ck_assert_ptr_nonnull(f);
	real_cpus(&real);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "others cpus=%u records=%u ", &others, &records) == 2)
			ck_assert_uint_eq(records, 0);
		if (sscanf(line, "cpu%u records=%u", &cpu, &records) != 2)
			continue;
		lines++;
		ck_assert(pp_cpumask_test(&e->rings, cpu));
		if (pp_cpumask_test(&real, cpu))
			ck_assert_uint_ge(records, RECORDS);
		else
			ck_assert_uint_eq(records, 0);
	}
	if (machine->rings)
		ck_assert_uint_eq(lines + others, machine->rings);
	else
		ck_assert_uint_ge(lines, 1);
	ck_assert_int_eq(others > 0, machine->rings > 256);
	check_totals(e, line);
}

/* ── tests ──────────────────────────────────────────────────────────────────────────────── */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void setup(void)
{
	ck_assert_int_eq(pins_open(registry), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* Both recorders of tracepoints: the generic one holds the addresses of few rings and looks up
 * many; those in C always look up. */
static const struct {
	const char *event;
	bool counted; /* make_records() fires it */
} events[] = {
	{ "oom:oom_score_adj_update", true },
	{ "sched:sched_switch", false },
	{ "oom:oom_score_adj_update,oom:mark_victim", true },
};

START_TEST(made_for_all_of_them)
{
	size_t which = (size_t)_i % ARRAY_SIZE(events);
	int times = is_full_length() ? TIMES : 1;
	double create_ms[TIMES], delete_ms[TIMES];
	struct pp_event e;

	machine = &machines[(size_t)_i / ARRAY_SIZE(events)];
	ask(events[which].event);
	for (int i = 0; i < times; i++) {
		double begun = now_ms();

		e = create();
		create_ms[i] = now_ms() - begun;
		if (i == 0 && events[which].counted) {
			make_records();
			check_stat(&e);
		}
		begun = now_ms();
		delete (e.id);
		delete_ms[i] = now_ms() - begun;
	}
	qsort(create_ms, times, sizeof(create_ms[0]), compare);
	qsort(delete_ms, times, sizeof(delete_ms[0]), compare);
	printf("%s, %s: %.1f ms to create, %.1f ms to delete\n", machine->name, events[which].event,
	       create_ms[times / 2], delete_ms[times / 2]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("many CPUs");
	TCase *t = tcase_create("many CPUs");
	int r;

	log_open("test-many-cpus");
	umask(077);
	machine = &machines[0];
	need(no_bpffs());
	need(no_btf());
	need(no_tracefs());
	need(no_dir(registry));
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, made_for_all_of_them, 0, ARRAY_SIZE(machines) * ARRAY_SIZE(events));
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
