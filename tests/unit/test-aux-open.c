// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The engine opens the perf events of AUX areas: where, and what it says if it cannot. On a real
 * bpffs and this kernel, with x86's PMU of MSRs: it has no AUX areas, but only a mapping shows that.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/cpus.h"
#include "daemon/engine/event/auxtrace.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/log.h"
#include "proto/macro.h"

#include "needs.h" /* after these, because check.h has a macro fail() */

#define BROKER 61999
#define DEVICES "/sys/bus/event_source/devices"
#define PMU_TYPE DEVICES "/msr/type"
#define NO_PMU 65535

static char registry[] = "/tmp/perfpersist-aux-XXXXXX";

static struct failure failure;
static struct pp_event event;
static struct pp_parsed parsed;

static void setup(void)
{
	umount2(registry, MNT_DETACH); /* left by a failed test */
	ck_assert_int_eq(pins_open(registry), 0);
}

static void teardown(void)
{
	struct pp_orphans orphans;

	ck_assert_int_eq(names_delete(event.id, NULL, BROKER, &event, &orphans, &failure), 0);
	reaper_wait(INT_MAX);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* beside: NULL, or of the event in its group. */
static void create_group(uint32_t type, uint32_t any_cpu, const struct pp_source *beside)
{
	static struct pp_spec spec;

	spec = (struct pp_spec){
		.ns = "a",
		.name = "trace",
		.event = "pmu//",
		.data_size = 65536,
		.mode = 0640,
		.flags = PP_EVENT_ALL_CPUS | PP_EVENT_AUX,
	};
	parsed = (struct pp_parsed){ .n_sources = 1 };
	parsed.sources[0] = (struct pp_source){
		.kind = PP_SOURCE_AUX,
		.type = type,
		.any_cpu = any_cpu,
		.text = "pmu//",
	};
	if (beside) {
		parsed.sources[parsed.n_sources++] = *beside;
		spec.flags |= PP_EVENT_AUX_GROUP;
	}
	ck_assert_int_eq(pp_spec_check(&spec), 0);
	ck_assert_msg(event_create(&spec, &parsed, NULL, 0, NULL, NULL, BROKER, &event, &failure) ==
			      0,
		      "%s", failure.sentence);
}

static void create(uint32_t type, uint32_t any_cpu)
{
	create_group(type, any_cpu, NULL);
}

/* On CPUs 0 and 1. The caller closes the descriptors. */
static int open_both(uint64_t id, struct pp_cpumask *opened, struct pp_fds *fds)
{
	struct pp_cpumask both = {};

	pp_cpumask_set(&both, 0);
	pp_cpumask_set(&both, 1);
	fds->n = 0;
	return auxtrace_open(id, parsed.n_sources, &both, opened, fds, &failure);
}

static uint32_t pmu_type(void)
{
	_cleanup_fclose_ FILE *f = fopen(PMU_TYPE, "re");
	uint32_t type = 0;

	return f && fscanf(f, "%u", &type) == 1 ? type : 0;
}

static const char *no_such_pmu(void)
{
	return pmu_type() ? NULL : "needs the PMU of MSRs";
}

/* That PMU takes no events with a period, as all have that lead a group. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_perf_event_open) {
		struct perf_event_attr *attr = (struct perf_event_attr *)a[0];

		if (attr->type == pmu_type())
			attr->sample_period = 0;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ENOENT is what the broker takes for an event that is gone. */
START_TEST(no_pmu)
{
	struct pp_cpumask opened;
	struct pp_fds fds;

	create(NO_PMU, 0);
	ck_assert_int_eq(open_both(event.id, &opened, &fds), -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(failure.sentence, "does not trace on CPU 0, or its driver"));
	ck_assert_int_eq(open_both(event.id + 1, &opened, &fds), -ENOENT);
}
END_TEST

START_TEST(pin_removed)
{
	struct pp_cpumask opened;
	struct pp_fds fds;
	char from[PATH_MAX], to[PATH_MAX];
	uint32_t type = pmu_type();

	create(type, 0);
	snprintf(from, sizeof(from), "%s/by-id/%llu/meta", registry, (unsigned long long)event.id);
	snprintf(to, sizeof(to), "%s/by-id/%llu/gone", registry, (unsigned long long)event.id);
	ck_assert_int_eq(rename(from, to), 0);
	ck_assert_int_eq(open_both(event.id, &opened, &fds), -ENODATA);
	ck_assert_int_eq(rename(to, from), 0);
	ck_assert_int_eq(open_both(event.id, &opened, &fds), 0);
	ck_assert(pp_cpumask_test(&opened, 0));
	pp_fds_close(&fds);
}
END_TEST

static void write_device(const char *leaf, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), DEVICES "/pmu/%s", leaf);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

/* A PMU that some CPUs lack, as its sysfs file says. */
START_TEST(some_cpus)
{
	struct pp_cpumask online, opened;
	uint32_t type = pmu_type();
	struct pp_fds fds;
	char text[16];

	snprintf(text, sizeof(text), "%u", type);
	ck_assert_int_eq(mount("none", DEVICES, "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mkdir(DEVICES "/pmu", 0755), 0);
	write_device("type", text);
	write_device("cpumask", "0");
	create(type, 1);
	ck_assert(pp_cpumask_test(&event.rings, 0));
	ck_assert(!pp_cpumask_test(&event.rings, 1));
	ck_assert_int_eq(open_both(event.id, &opened, &fds), 0);
	ck_assert_uint_eq(fds.n, 1);
	ck_assert(pp_cpumask_test(&opened, 0));
	pp_fds_close(&fds);
	/* It can change. */
	write_device("cpumask", "1");
	ck_assert_int_eq(open_both(event.id, &opened, &fds), 0);
	ck_assert_int_eq(pp_cpus_read("online", &online), 0);
	ck_assert(!pp_cpumask_test(&opened, 0));
	ck_assert_int_eq(pp_cpumask_test(&opened, 1), pp_cpumask_test(&online, 1));
	pp_fds_close(&fds);
	ck_assert_int_eq(umount(DEVICES), 0);
}
END_TEST

/* Two perf events on each CPU, or none. This PMU neither pauses nor gives parts of a trace. */
START_TEST(beside)
{
	static const struct {
		struct pp_source source;
		const char *why; /* NULL: it is opened */
	} cases[] = {
		{ { .kind = PP_SOURCE_TRACEPOINT, .system = "sched", .name = "sched_switch" },
		  NULL },
		{ { .kind = PP_SOURCE_SAMPLING, .type = PERF_TYPE_SOFTWARE }, NULL },
		{ { .kind = PP_SOURCE_SAMPLING, .type = PERF_TYPE_SOFTWARE, .aux_sample = 64 },
		  "no samples of its trace, which 'beside'" },
		{ { .kind = PP_SOURCE_SAMPLING,
		    .type = PERF_TYPE_SOFTWARE,
		    .aux_action = PP_AUX_PAUSE },
		  "since Linux 6.13" },
		{ { .kind = PP_SOURCE_SAMPLING, .type = NO_PMU }, "beside the trace on CPU 0" },
	};
	struct pp_source source = cases[_i].source;
	struct pp_cpumask online, opened;
	struct pp_fds fds;

	strcpy(source.text, "beside");
	create_group(pmu_type(), 0, &source);
	ck_assert_uint_eq(event.n_sources, 2);
	ck_assert_int_eq(pp_cpus_read("online", &online), 0);
	ck_assert_int_eq(open_both(event.id, &opened, &fds), cases[_i].why ? -failure.error : 0);
	if (cases[_i].why) {
		ck_assert_msg(strstr(failure.sentence, cases[_i].why) != NULL, "%s",
			      failure.sentence);
	} else {
		ck_assert_uint_eq(fds.n, 2 * pp_cpumask_count(&opened));
		ck_assert_uint_gt(fds.n, 0);
	}
	ck_assert_int_eq(open_both(event.id, &opened, &fds) < 0, cases[_i].why != NULL);
	ck_assert_int_eq(auxtrace_open(event.id, 1, &online, &opened, &fds, &failure), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("aux-open");
	TCase *t = tcase_create("all");
	int r;

	log_open("test-aux-open");
	umask(077);
	need(no_bpffs());
	need(no_btf());
	need(no_dir(registry));
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, no_pmu);
	add_test_unless(no_such_pmu(), t, pin_removed);
	add_test_unless(no_such_pmu(), t, some_cpus);
	if (pmu_type()) /* else the tests above say so */
		tcase_add_loop_test(t, beside, 0, 5);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
