// SPDX-License-Identifier: LGPL-2.1-or-later
/* From create request to spec: what is filled in, and what is refused in which words. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/specify.h"
#include "proto/macro.h"

#define MAX_BUFFER (PP_DATA_SIZE_MAX / 2)

static struct machine machine;
static struct pp_msg_create_request request;
static struct pp_spec spec;
static char sentence[PP_SENTENCE_SIZE];

static void setup(void)
{
	machine = (struct machine){ .max_sample_rate = 100000 };
	for (unsigned cpu = 0; cpu < 4; cpu++)
		pp_cpumask_set(&machine.possible, cpu);
	pp_cpumask_set(&machine.online, 0);
	pp_cpumask_set(&machine.online, 1);
	pp_cpumask_set(&machine.online, 3);
	request =
		(struct pp_msg_create_request){ .ns = "ns", .name = "name", .event = "cpu-clock" };
	sentence[0] = '\0';
}

static void accepted(void)
{
	int err = specify(&request, &machine, MAX_BUFFER, &spec, sentence, sizeof(sentence));

	ck_assert_msg(err == 0, "%s", sentence);
	/* What the engine will check again must hold once the namespace's rights are in. */
	spec.mode = 0640;
	ck_assert_int_eq(pp_spec_check(&spec), 0);
}

static void refused(int error, const char *say)
{
	int err = specify(&request, &machine, MAX_BUFFER, &spec, sentence, sizeof(sentence));

	ck_assert_int_eq(err, error);
	ck_assert_msg(strstr(sentence, say), "'%s' is not in: %s", say, sentence);
}

START_TEST(defaults)
{
	accepted();
	ck_assert_str_eq(spec.ns, "ns");
	ck_assert_str_eq(spec.name, "name");
	ck_assert_str_eq(spec.event, "cpu-clock");
	ck_assert_uint_eq(spec.data_size, 512 * 1024);
	ck_assert_uint_eq(spec.period, 4000);
	ck_assert_uint_eq(spec.flags, PP_EVENT_FREQ | PP_EVENT_ALL_CPUS);
	snprintf(request.event, sizeof(request.event), "sched:sched_switch");
	accepted();
	ck_assert_uint_eq(spec.period, 0);
	ck_assert_uint_eq(spec.flags, PP_EVENT_ALL_CPUS);
}
END_TEST

START_TEST(names)
{
	snprintf(request.ns, sizeof(request.ns), "a.b");
	refused(-EINVAL, "'a.b'");
	snprintf(request.ns, sizeof(request.ns), "by-id");
	refused(-EINVAL, "by-id");
	snprintf(request.ns, sizeof(request.ns), "ns");
	snprintf(request.name, sizeof(request.name), "1x");
	refused(-EINVAL, "'1x'");
	memset(request.name, 0, sizeof(request.name));
	refused(-EINVAL, "''");
}
END_TEST

START_TEST(cpus)
{
	snprintf(request.cpus, sizeof(request.cpus), "0-1,3");
	accepted();
	ck_assert_uint_eq(spec.cpus.bits[0], 0xb);
	ck_assert(!(spec.flags & PP_EVENT_ALL_CPUS));
	snprintf(request.cpus, sizeof(request.cpus), "0-3");
	refused(-ENODEV, "CPU 2 is offline");
	ck_assert_ptr_nonnull(strstr(sentence, "0-1,3"));
	snprintf(request.cpus, sizeof(request.cpus), "3-5");
	refused(-EINVAL, "CPU 4-5");
	snprintf(request.cpus, sizeof(request.cpus), "1,x");
	refused(-EINVAL, "not a list of CPUs");
	snprintf(request.cpus, sizeof(request.cpus), "99999");
	refused(-EINVAL, "not a list of CPUs");
}
END_TEST

START_TEST(buffers)
{
	request.data_size = 1;
	accepted();
	ck_assert_uint_eq(spec.data_size, PP_DATA_SIZE_MIN);
	request.data_size = 4097;
	accepted();
	ck_assert_uint_eq(spec.data_size, 8192);
	request.data_size = MAX_BUFFER;
	accepted();
	ck_assert_uint_eq(spec.data_size, MAX_BUFFER);
	request.data_size = MAX_BUFFER + 1;
	refused(-EDQUOT, "MaxBuffer=");
	request.data_size = PP_DATA_SIZE_MAX + 1;
	refused(-EINVAL, "more than");
	request.data_size = UINT64_MAX;
	refused(-EINVAL, "more than");
}
END_TEST

START_TEST(periods)
{
	request.period = 99;
	accepted();
	ck_assert_uint_eq(spec.period, 99);
	ck_assert(!(spec.flags & PP_EVENT_FREQ));
	request.flags = PP_EVENT_FREQ | PP_EVENT_CALLCHAIN;
	accepted();
	ck_assert_uint_eq(spec.flags, PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_ALL_CPUS);
	request.period = 100001;
	refused(-EINVAL, "perf_event_max_sample_rate");
	request.flags = 0;
	request.period = 1ULL << 63;
	refused(-EINVAL, "more than the kernel can count");
	/* The default gives way to what the kernel allows. */
	request.period = 0;
	machine.max_sample_rate = 1000;
	accepted();
	ck_assert_uint_eq(spec.period, 1000);
}
END_TEST

START_TEST(tracepoints_do_not_sample)
{
	snprintf(request.event, sizeof(request.event), "sched:sched_switch");
	request.period = 1;
	refused(-EINVAL, "period");
	request.flags = PP_EVENT_FREQ;
	refused(-EINVAL, "frequency");
	request.period = 0;
	refused(-EINVAL, "frequency");
	request.flags = PP_EVENT_CALLCHAIN;
	refused(-EOPNOTSUPP, "call chains");
}
END_TEST

START_TEST(unknown_bits)
{
	request.flags = PP_EVENT_ALL_CPUS;
	refused(-EINVAL, "flags");
	request.flags = 1U << 31;
	refused(-EINVAL, "flags");
	request.flags = 0;
	request.reserved = 1;
	refused(-EINVAL, "flags");
}
END_TEST

START_TEST(text_is_parsed_elsewhere_but_told_here)
{
	snprintf(request.event, sizeof(request.event), "no-such-event");
	refused(-EINVAL, "no-such-event");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("specify");
	TCase *t = tcase_create("requests");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, defaults);
	tcase_add_test(t, names);
	tcase_add_test(t, cpus);
	tcase_add_test(t, buffers);
	tcase_add_test(t, periods);
	tcase_add_test(t, tracepoints_do_not_sample);
	tcase_add_test(t, unknown_bits);
	tcase_add_test(t, text_is_parsed_elsewhere_but_told_here);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
