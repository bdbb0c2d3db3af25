// SPDX-License-Identifier: LGPL-2.1-or-later
/* Orders as a hostile broker might send them: one good one, and each way to spoil it. */
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/order.h"
#include "daemon/text.h"
#include "proto/macro.h"

static struct pp_order order;
static struct pp_spec *const spec = &order.spec;

static void good_create(void)
{
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CREATE;
	strcpy(spec->ns, "web");
	strcpy(spec->name, "switches");
	spec->data_size = 512 * 1024;
	spec->owner = 1000;
	spec->group = 1001;
	spec->mode = 0640;
	spec->flags = PP_EVENT_ALL_CPUS;
}

static void good_tracepoint(void)
{
	good_create();
	strcpy(spec->event, "sched:sched_switch");
	spec->source.kind = PP_SOURCE_TRACEPOINT;
	strcpy(spec->source.system, "sched");
	strcpy(spec->source.tracepoint, "sched_switch");
}

static void good_sampling(void)
{
	good_create();
	strcpy(spec->event, "cpu-clock:u");
	spec->source.kind = PP_SOURCE_SAMPLING;
	spec->source.type = PERF_TYPE_SOFTWARE;
	spec->source.config = PERF_COUNT_SW_CPU_CLOCK;
	spec->source.exclude = PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV;
	spec->period = 999;
	spec->flags |= PP_EVENT_FREQ | PP_EVENT_CALLCHAIN;
}

static void expect(int r)
{
	ck_assert_int_eq(pp_order_check(&order), r);
	ck_assert_int_eq(pp_spec_check(spec), r);
}

/* One field of a good order, changed. */
#define SPOIL(good, ...)          \
	do {                      \
		good();           \
		expect(0);        \
		__VA_ARGS__;      \
		expect(-EBADMSG); \
	} while (0)

#define ALLOW(good, ...)     \
	do {                 \
		good();      \
		__VA_ARGS__; \
		expect(0);   \
	} while (0)

#define FILL(field) memset(field, 'a', sizeof(field))

START_TEST(orders)
{
	good_tracepoint();
	order.abi++;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	good_tracepoint();
	order.type = 0;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	order.type = PP_ORDER_DELETE + 1;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);

	/* A create's spec is looked at, the others have none. */
	memset(&order, 0, sizeof(order));
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CREATE;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	order.type = PP_ORDER_ENUMERATE;
	ck_assert_int_eq(pp_order_check(&order), 0);
	order.type = PP_ORDER_DELETE;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
	order.id = 1;
	ck_assert_int_eq(pp_order_check(&order), 0);
	order.abi++;
	ck_assert_int_eq(pp_order_check(&order), -EBADMSG);
}
END_TEST

START_TEST(names)
{
	SPOIL(good_tracepoint, *spec->ns = 0);
	SPOIL(good_tracepoint, *spec->name = 0);
	SPOIL(good_tracepoint, FILL(spec->ns));
	SPOIL(good_tracepoint, FILL(spec->name));
	SPOIL(good_tracepoint, strcpy(spec->ns, "+new-1"));
	SPOIL(good_tracepoint, strcpy(spec->name, "../x"));
	SPOIL(good_tracepoint, strcpy(spec->name, ".."));
	SPOIL(good_tracepoint, strcpy(spec->ns, "by-id"));
	ALLOW(good_tracepoint, strcpy(spec->name, "by-id"));
}
END_TEST

START_TEST(event_text)
{
	SPOIL(good_tracepoint, *spec->event = 0);
	SPOIL(good_tracepoint, FILL(spec->event));
	SPOIL(good_tracepoint, spec->event[3] = '\n');
	SPOIL(good_tracepoint, spec->event[3] = '\033');
	SPOIL(good_tracepoint, spec->event[3] = '\x7f');
	SPOIL(good_tracepoint, spec->event[3] = '\xc3');
	ALLOW(good_tracepoint, spec->event[3] = ' ');
}
END_TEST

START_TEST(sources)
{
	SPOIL(good_tracepoint, spec->source.kind = 0);
	SPOIL(good_tracepoint, spec->source.kind = 3);
	SPOIL(good_tracepoint, spec->source.kind = PP_SOURCE_SAMPLING);
	SPOIL(good_sampling, spec->source.kind = PP_SOURCE_TRACEPOINT);
}
END_TEST

START_TEST(tracepoints)
{
	SPOIL(good_tracepoint, *spec->source.system = 0);
	SPOIL(good_tracepoint, *spec->source.tracepoint = 0);
	SPOIL(good_tracepoint, FILL(spec->source.system));
	SPOIL(good_tracepoint, FILL(spec->source.tracepoint));
	SPOIL(good_tracepoint, strcpy(spec->source.system, ".."));
	SPOIL(good_tracepoint, strcpy(spec->source.tracepoint, "../../x"));
	ALLOW(good_tracepoint, strcpy(spec->source.system, "9p"));
	SPOIL(good_tracepoint, spec->source.type = 1);
	SPOIL(good_tracepoint, spec->source.config = 1);
	SPOIL(good_tracepoint, spec->source.config1 = 1);
	SPOIL(good_tracepoint, spec->source.config2 = 1);
	SPOIL(good_tracepoint, spec->source.exclude = PP_EXCLUDE_USER);
	SPOIL(good_tracepoint, spec->source.precise_ip = 1);
	SPOIL(good_tracepoint, spec->period = 1);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_FREQ);
	SPOIL(good_tracepoint, spec->flags |= PP_EVENT_CALLCHAIN);
	ALLOW(good_tracepoint, spec->flags |= PP_EVENT_GENERIC);
}
END_TEST

START_TEST(counters)
{
	SPOIL(good_sampling, spec->source.type = PERF_TYPE_TRACEPOINT);
	SPOIL(good_sampling, spec->source.type = PERF_TYPE_HW_CACHE);
	SPOIL(good_sampling, spec->source.type = PERF_TYPE_RAW);
	SPOIL(good_sampling, spec->source.type = PERF_TYPE_BREAKPOINT);
	SPOIL(good_sampling, spec->source.type = 99);
	SPOIL(good_sampling, spec->source.config = PERF_COUNT_SW_DUMMY);
	SPOIL(good_sampling, spec->source.config = PERF_COUNT_SW_BPF_OUTPUT);
	SPOIL(good_sampling, spec->source.config = PERF_COUNT_SW_CGROUP_SWITCHES + 1);
	SPOIL(good_sampling, spec->source.config = 1ULL << 32);
	SPOIL(good_sampling, spec->flags |= PP_EVENT_GENERIC);
	ALLOW(good_sampling, spec->source.config = PERF_COUNT_SW_CGROUP_SWITCHES);
	ALLOW(good_sampling, spec->source.type = PERF_TYPE_HARDWARE,
	      spec->source.config = PERF_COUNT_HW_REF_CPU_CYCLES);
	SPOIL(good_sampling, spec->source.type = PERF_TYPE_HARDWARE,
	      spec->source.config = PERF_COUNT_HW_MAX);
	SPOIL(good_sampling, spec->source.config1 = 1);
	SPOIL(good_sampling, spec->source.config2 = 1);
	SPOIL(good_sampling, spec->source.exclude = 1U << 6);
	ALLOW(good_sampling, spec->source.exclude = 0x3f);
	SPOIL(good_sampling, spec->source.precise_ip = 4);
	ALLOW(good_sampling, spec->source.precise_ip = 3);
	SPOIL(good_sampling, strcpy(spec->source.system, "sched"));
	SPOIL(good_sampling, strcpy(spec->source.tracepoint, "sched_switch"));
	SPOIL(good_sampling, spec->period = 0);
	SPOIL(good_sampling, spec->period = 1ULL << 63);
	ALLOW(good_sampling, spec->period = INT64_MAX);
}
END_TEST

START_TEST(sizes)
{
	SPOIL(good_tracepoint, spec->data_size = 0);
	SPOIL(good_tracepoint, spec->data_size--);
	SPOIL(good_tracepoint, spec->data_size = 3 << 12);
	SPOIL(good_tracepoint, spec->data_size = PP_DATA_SIZE_MIN / 2);
	SPOIL(good_tracepoint, spec->data_size = PP_DATA_SIZE_MAX * 2);
	ALLOW(good_tracepoint, spec->data_size = PP_DATA_SIZE_MIN);
	ALLOW(good_tracepoint, spec->data_size = PP_DATA_SIZE_MAX);
}
END_TEST

START_TEST(flags_and_cpus)
{
	SPOIL(good_tracepoint, spec->flags |= 1U << 4);
	SPOIL(good_tracepoint, spec->flags |= 1U << 31);
	SPOIL(good_tracepoint, spec->flags = 0); /* on no CPU at all */
	SPOIL(good_tracepoint, pp_cpumask_set(&spec->cpus, 0));
	SPOIL(good_tracepoint, pp_cpumask_set(&spec->cpus, PP_CPUS_MAX - 1));
	ALLOW(good_tracepoint, spec->flags = 0, pp_cpumask_set(&spec->cpus, PP_CPUS_MAX - 1));
}
END_TEST

START_TEST(rights)
{
	SPOIL(good_tracepoint, spec->mode = 01000);
	SPOIL(good_tracepoint, spec->mode = UINT32_MAX);
	SPOIL(good_tracepoint, spec->owner = UINT32_MAX);
	SPOIL(good_tracepoint, spec->group = UINT32_MAX);
	ALLOW(good_tracepoint, spec->mode = 0777);
	ALLOW(good_tracepoint, spec->mode = 0);
	ALLOW(good_tracepoint, spec->owner = 0);
}
END_TEST

START_TEST(events)
{
	struct pp_event good = {
		.id = 1,
		.recorder = PP_RECORDER_GENERIC,
		.header_size = PP_RING_PAGE,
		.spill_size = 64,
	};
	struct pp_event e;

#define SPOIL_EVENT(change)                                     \
	do {                                                    \
		e = good;                                       \
		change;                                         \
		ck_assert_int_eq(pp_event_check(&e), -EBADMSG); \
	} while (0)

	good_tracepoint();
	good.spec = *spec;
	ck_assert_int_eq(pp_event_check(&good), 0);
	SPOIL_EVENT(e.id = 0);
	SPOIL_EVENT(e.recorder = 0);
	SPOIL_EVENT(e.recorder = PP_RECORDER_OVERFLOW + 1);
	SPOIL_EVENT(e.header_size = PP_RING_PAGE - 1);
	SPOIL_EVENT(e.header_size = UINT32_MAX);
	SPOIL_EVENT(e.spill_size = PP_SPILL_SIZE_MAX + 1);
	SPOIL_EVENT(e.spec.name[0] = '.');
}
END_TEST

START_TEST(cpumasks)
{
	struct pp_cpumask m = { 0 };
	unsigned seen = 0;

	pp_cpumask_set(&m, 0);
	pp_cpumask_set(&m, 64);
	pp_cpumask_set(&m, 4095);
	pp_cpumask_set(&m, 7);
	pp_cpumask_clear(&m, 7);
	ck_assert(!pp_cpumask_test(&m, 4096));
	ck_assert(!pp_cpumask_test(&m, UINT32_MAX));
	PP_CPUMASK_FOREACH(cpu, &m)
	{
		ck_assert(cpu == 0 || cpu == 64 || cpu == 4095);
		seen++;
	}
	ck_assert_uint_eq(seen, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("order");
	TCase *t = tcase_create("order");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, orders);
	tcase_add_test(t, names);
	tcase_add_test(t, event_text);
	tcase_add_test(t, sources);
	tcase_add_test(t, tracepoints);
	tcase_add_test(t, counters);
	tcase_add_test(t, sizes);
	tcase_add_test(t, flags_and_cpus);
	tcase_add_test(t, rights);
	tcase_add_test(t, events);
	tcase_add_test(t, cpumasks);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
