// SPDX-License-Identifier: LGPL-2.1-or-later
/* From create request to spec: defaults, and the message of each refusal. */
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/resolve.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

#define MAX_BUFFER (PP_DATA_SIZE_MAX / 2)

static struct machine machine;
static struct pp_msg_create_request request;
static struct pp_spec spec;
static struct pp_parsed parsed;
static char sentence[PP_SENTENCE_SIZE];

static void setup(void)
{
	machine = (struct machine){ .max_sample_rate = 100000, .max_stack = 1000 };
	for (unsigned cpu = 0; cpu < 4; cpu++)
		pp_cpumask_set(&machine.possible, cpu);
	pp_cpumask_set(&machine.online, 0);
	pp_cpumask_set(&machine.online, 1);
	pp_cpumask_set(&machine.online, 3);
	request = (struct pp_msg_create_request){
		.ns = "ns",
		.name = "name",
		.count = 1,
		.selections[0].event = "cpu-clock",
	};
	sentence[0] = '\0';
}

static void accepted(void)
{
	static struct pp_order order;
	struct pp_msg_target is;
	int r = resolve(&request, &machine, MAX_BUFFER, &spec, &parsed, sentence, sizeof(sentence));

	ck_assert_msg(r == 0, "%s", sentence);
	/* The engine's own checks must pass once the namespace's rights are in. */
	spec.mode = 0640;
	order.abi = PP_ORDER_ABI;
	order.type = PP_ORDER_CREATE;
	order.spec = spec;
	order.parsed = parsed;
	resolve_target(&request, &spec, &is);
	order.target = is;
	ck_assert_int_eq(pp_order_check(&order), 0);
}

static void bound(void)
{
	accepted();
	ck_assert_uint_eq(spec.flags & PP_EVENT_BOUND, PP_EVENT_BOUND);
}

static void refused(int error, const char *say)
{
	int r = resolve(&request, &machine, MAX_BUFFER, &spec, &parsed, sentence, sizeof(sentence));

	ck_assert_int_eq(r, error);
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
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "sched:sched_switch");
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
	/* The default respects the kernel's limit. */
	request.period = 0;
	machine.max_sample_rate = 1000;
	accepted();
	ck_assert_uint_eq(spec.period, 1000);
}
END_TEST

static void samples(const char *event, uint32_t flags, uint64_t period, uint32_t expected)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "%s", event);
	request.flags = flags;
	request.period = period;
	accepted();
	ck_assert_msg(spec.samples == expected, "%s: %u", event, spec.samples);
}

/* The charge: at most so many samples per second and CPU. */
START_TEST(samples_are_counted)
{
	samples("cpu-clock", PP_EVENT_FREQ, 999, 999);
	samples("cpu-clock", 0, 0, 4000);
	samples("cpu-clock,task-clock,page-faults", PP_EVENT_FREQ, 999, 3 * 999);
	/* A clock's period is in nanoseconds, and the kernel has none below 10000. */
	samples("cpu-clock", 0, 1000000, 1000);
	samples("task-clock", 0, 1, 100000);
	samples("cpu-clock", 0, 1ULL << 62, 1);
	/* A processor's counter counts as the fastest possible. */
	samples("cycles", 0, 1000000, 5000);
	samples("r1a8", 0, 1, 100000);
	samples("instructions,cache-misses", 0, 5000000, 2000);
	/* Occurrences are not counted this way. */
	samples("page-faults,context-switches", 0, 1, 0);
	samples("mem:0x1000", 0, 1, 0);
	samples("sched:sched_switch", 0, 0, 0);
}
END_TEST

START_TEST(tracepoints_do_not_sample)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "sched:sched_switch");
	request.period = 1;
	refused(-EINVAL, "period");
	request.flags = PP_EVENT_FREQ;
	refused(-EINVAL, "frequency");
	request.period = 0;
	refused(-EINVAL, "frequency");
	request.flags = PP_EVENT_NO_USER_CHAIN;
	refused(-EINVAL, "for no chain");
	request.flags = PP_EVENT_CHAINS;
	refused(-EINVAL, "neither half");
	request.flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_KERNEL_CHAIN;
	accepted();
	ck_assert_uint_eq(spec.flags, request.flags | PP_EVENT_ALL_CPUS);
}
END_TEST

START_TEST(entries_of_chains)
{
	request.max_stack = 5;
	refused(-EINVAL, "add -g (CallGraph=yes)");
	request.flags = PP_EVENT_CALLCHAIN;
	accepted();
	ck_assert_uint_eq(spec.max_stack, 5);
	request.max_stack = PP_MAX_STACK;
	accepted();
	request.max_stack = PP_MAX_STACK + 1;
	refused(-EINVAL, "the 127 that can be recorded here");
	request.max_stack = 1U << 16 | 5;
	refused(-EINVAL, "longer than");
	/* The kernel's limit. */
	machine.max_stack = 16;
	request.max_stack = 17;
	refused(-EINVAL, "the 16 that can be recorded here");
	request.max_stack = 16;
	accepted();
	request.max_stack = 0;
	accepted();
	ck_assert_uint_eq(spec.max_stack, 0);
}
END_TEST

START_TEST(user_stacks)
{
	request.stack_user = 8192;
	refused(-EINVAL, "the kernel's half of call chains alone");
	request.flags = PP_EVENT_CALLCHAIN;
	refused(-EINVAL, "the kernel's half of call chains alone");
	request.flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_KERNEL_CHAIN;
	refused(-EINVAL, "the kernel's half of call chains alone");
	request.flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN;
	accepted();
	ck_assert_uint_eq(spec.stack_user, 8192);
	ck_assert_uint_eq(spec.flags & PP_EVENT_USER_STACK, PP_EVENT_USER_STACK);
	request.stack_user = PP_STACK_USER_MAX;
	accepted();
	request.stack_user = PP_STACK_USER_MAX + 8;
	refused(-EINVAL, "65528 at most");
	request.stack_user = 1 << 16 | 8192;
	refused(-EINVAL, "65528 at most");
	request.stack_user = 12;
	refused(-EINVAL, "a multiple of 8");
	/* The two share a word of the spec. */
	request.stack_user = 8;
	request.max_rate = UINT64_MAX;
	accepted();
	ck_assert_uint_eq(spec.stack_user, 8);
	ck_assert_uint_eq(spec.max_rate, (1ULL << 48) - 1);
}
END_TEST

/* Bytes a second, of all sources: as many as a CPU can copy beside its work, and one sample more. */
START_TEST(user_stacks_are_not_copied_all_the_time)
{
	request.flags = PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN | PP_EVENT_FREQ;
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "cpu-clock");
	request.stack_user = 16384;
	request.period = 16384;
	accepted();
	request.period++;
	refused(-EINVAL, "16385 samples a second, each with up to 16384 bytes of user stack");
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "cpu-clock,task-clock");
	request.period = 8192;
	accepted();
	request.period++;
	refused(-EINVAL, "16386 samples");
	request.flags &= ~PP_EVENT_FREQ;
	request.stack_user = PP_STACK_USER_MAX;
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "cpu-clock");
	request.period = 1000;
	refused(-EINVAL, "100000 samples");
	/* Nobody knows how often; MaxOnTracepointPerUser= bounds it. */
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "page-faults");
	request.period = 1;
	accepted();
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "sched:sched_switch");
	request.period = 0;
	accepted();
}
END_TEST

START_TEST(unknown_bits)
{
	request.flags = PP_EVENT_ALL_CPUS;
	refused(-EINVAL, "flags");
	request.flags = 1U << 31;
	refused(-EINVAL, "flags");
	request.flags = PP_EVENT_SHARE | PP_EVENT_NO_SHARE;
	refused(-EINVAL, "choose one");
	/* These flags say how to create it, not what it is. */
	request.flags = PP_EVENT_SHARE | PP_EVENT_BOOT;
	accepted();
	ck_assert_uint_eq(spec.flags, PP_EVENT_FREQ | PP_EVENT_ALL_CPUS);
}
END_TEST

START_TEST(text_is_parsed_elsewhere_but_told_here)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "no-such-event");
	refused(-EINVAL, "no-such-event");
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "sched:sched_switch");
	snprintf(request.selections[0].filter, PP_FILTER_SIZE, "pid ==");
	ck_assert_int_lt(
		resolve(&request, &machine, MAX_BUFFER, &spec, &parsed, sentence, sizeof(sentence)),
		0);
	ck_assert_str_ne(sentence, "");
	request.count = 0;
	refused(-EINVAL, "No event");
}
END_TEST

static void select_another(const char *event, const char *filter)
{
	struct pp_msg_selection *s = &request.selections[request.count++];

	snprintf(s->event, sizeof(s->event), "%s", event);
	snprintf(s->filter, sizeof(s->filter), "%s", filter);
}

START_TEST(selections)
{
	request.count = 0;
	select_another("sched:sched_switch,sched:sched_wakeup", "prev_pid != 0");
	select_another("raw_syscalls:*", "");
	select_another("sched:sched_waking", "pid == 1 && prio < 5");
	accepted();
	ck_assert_str_eq(spec.event, "sched:sched_switch,sched:sched_wakeup,raw_syscalls:*,"
				     "sched:sched_waking");
	ck_assert_str_eq(spec.filter, "sched:sched_switch,sched:sched_wakeup: prev_pid != 0; "
				      "sched:sched_waking: pid == 1 && prio < 5");
	ck_assert_uint_eq(parsed.n_sources, 4);
	ck_assert_uint_eq(parsed.n_nodes, 4);
	ck_assert_uint_eq(parsed.sources[0].n_filter, 1);
	ck_assert_uint_eq(parsed.sources[1].filter, 0);
	ck_assert_uint_eq(parsed.sources[1].n_filter, 1);
	ck_assert_uint_eq(parsed.sources[2].n_filter, 0);
	ck_assert_uint_eq(parsed.sources[3].filter, 1);
	ck_assert_uint_eq(parsed.sources[3].n_filter, 3);
	ck_assert_str_eq(parsed.nodes[0].field, "prev_pid");
	/* One filter for all sources is shown unchanged. */
	request.count = 0;
	select_another("sched:sched_wakeup", "pid > 1");
	select_another("sched:sched_waking", "pid > 1");
	accepted();
	ck_assert_str_eq(spec.filter, "pid > 1");
}
END_TEST

START_TEST(texts_that_are_too_long)
{
	char event[PP_TP_NAME_SIZE];

	request.count = 0;
	for (unsigned i = 0; i < 10; i++) {
		snprintf(event, sizeof(event), "sched:%0*u", 110, i);
		select_another(event, "");
	}
	refused(-E2BIG, "too long");
	request.count = 0;
	for (unsigned i = 0; i < PP_SELECTIONS_MAX; i++)
		select_another("sched:a,sched:b", "");
	ck_assert_int_eq(
		resolve(&request, &machine, MAX_BUFFER, &spec, &parsed, sentence, sizeof(sentence)),
		-E2BIG);
	ck_assert_str_ne(sentence, "");
}
END_TEST

/* The period belongs to the sampling sources; the others have none. */
START_TEST(mixtures)
{
	select_another("sched:sched_switch", "");
	request.period = 99;
	request.flags = PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_GENERIC;
	accepted();
	ck_assert_uint_eq(spec.period, 99);
	request.count = 1;
	refused(-EINVAL, "generic");
}
END_TEST

/* Without a PMU that traces. */
START_TEST(beside_nothing)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "cpu-clock/aux-sample-size=8/");
	refused(-EINVAL, "no area to go with");
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE,
		 "sched:sched_switch/aux-action=pause/");
	refused(-EINVAL, "'sched:sched_switch/aux-action=pause/' has a term about an AUX area");
	/* A probe has something else where these terms are. */
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "kprobe:vfs_read(arg1:u64)");
	accepted();
}
END_TEST

static void target(uint32_t kind, uint32_t flags)
{
	request.target = (struct pp_msg_target){ .kind = kind, .flags = flags };
	if (kind == PP_TARGET_CGROUP)
		strcpy(request.target.cgroup, "/a/b");
	else
		request.target.pid = 4711;
}

static void ask_for(const char *event)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "%s", event);
}

START_TEST(targets)
{
	struct pp_msg_target t;

	target(PP_TARGET_PROCESS, PP_TARGET_OR_FILTER);
	bound();
	ck_assert_str_eq(spec.filter, "");
	resolve_target(&request, &spec, &t);
	ck_assert_uint_eq(t.pid, 4711);
	ck_assert_uint_eq(t.flags, 0);
	target(PP_TARGET_CGROUP, PP_TARGET_DELETE);
	bound();
	ask_for("mem:0x1000:w");
	bound();
	ck_assert(
		resolve_is_same_target(&request, &(struct pp_msg_target){ .kind = PP_TARGET_CGROUP,
									  .flags = PP_TARGET_DELETE,
									  .cgroup = "/a/b" }));
	ck_assert(!resolve_is_same_target(&request,
					  &(struct pp_msg_target){ .kind = PP_TARGET_CGROUP,
								   .flags = PP_TARGET_DELETE,
								   .cgroup = "/a" }));
	strcpy(request.target.cgroup, "b");
	ck_assert(
		resolve_is_same_target(&request, &(struct pp_msg_target){ .kind = PP_TARGET_CGROUP,
									  .flags = PP_TARGET_DELETE,
									  .cgroup = "/a/b" }));
	target(PP_TARGET_NONE, 0);
	request.target.pid = 0;
	ask_for("cpu-clock");
	accepted();
	ck_assert_uint_eq(spec.flags & PP_EVENT_BOUND, 0);
	resolve_target(&request, &spec, &t);
	ck_assert_uint_eq(t.kind, PP_TARGET_NONE);
}
END_TEST

/* Programs on these run for all tasks. */
START_TEST(targets_that_become_filters)
{
	target(PP_TARGET_PROCESS, PP_TARGET_OR_FILTER);
	ask_for("sched:sched_switch");
	accepted();
	ck_assert_uint_eq(spec.flags & PP_EVENT_BOUND, 0);
	ck_assert_str_eq(spec.filter, "PID == 4711");
	ck_assert_uint_eq(parsed.n_nodes, 1);
	strcpy(request.selections[0].filter, "prev_pid == 1 || next_pid == 1");
	accepted();
	ck_assert_str_eq(spec.filter, "PID == 4711 && (prev_pid == 1 || next_pid == 1)");
	ask_for("sched:sched_switch,cpu-clock");
	request.selections[0].filter[0] = 0;
	accepted();
	ck_assert_str_eq(spec.event, "sched:sched_switch,cpu-clock");
	ck_assert_uint_eq(parsed.n_sources, 2);
	ck_assert_uint_eq(parsed.sources[1].n_filter, 1);
	memset(request.selections[0].filter, ' ', PP_FILTER_SIZE - 1);
	memcpy(request.selections[0].filter, "prev_pid==1", 11);
	refused(-E2BIG, "with the process it can have");
}
END_TEST

START_TEST(targets_that_are_none)
{
	target(PP_TARGET_THREAD, 0);
	ask_for("sched:sched_switch");
	refused(-EOPNOTSUPP, "--filter 'TID == 4711'");
	target(PP_TARGET_CGROUP, 0);
	refused(-EOPNOTSUPP, "--filter 'CGROUP == \"/a/b\"'");
	target(PP_TARGET_PROCESS, PP_TARGET_OR_FILTER | PP_TARGET_DELETE);
	refused(-EOPNOTSUPP, "--filter 'PID == 4711'");
	ask_for("cpu-clock");
	target(PP_TARGET_CGROUP, PP_TARGET_NO_INHERIT);
	refused(-EINVAL, "--no-inherit is for -p and -t");
	target(PP_TARGET_CGROUP, 0);
	request.target.cgroup[1] = '\t';
	refused(-EINVAL, "printable ASCII");
	target(4, 0);
	refused(-EINVAL, "of the same version");
	target(PP_TARGET_PROCESS, PP_TARGET_ENDED);
	refused(-EINVAL, "of the same version");
	target(PP_TARGET_PROCESS, 0);
	request.target.pid = 0;
	refused(-EINVAL, "of the same version");
	target(PP_TARGET_PROCESS, 0);
	request.flags = PP_EVENT_BOOT;
	refused(-EINVAL, "not there after a reboot");
	target(PP_TARGET_CGROUP, PP_TARGET_DELETE);
	refused(-EINVAL, "--on-exit delete");
	target(PP_TARGET_CGROUP, 0);
	bound();
}
END_TEST

START_TEST(breakpoints_count_every_hit)
{
	snprintf(request.selections[0].event, PP_EVENT_TEXT_SIZE, "mem:0x1000:w");
	accepted();
	ck_assert_uint_eq(spec.period, 1);
	ck_assert(!(spec.flags & PP_EVENT_FREQ));
	select_another("cpu-clock", "");
	accepted();
	ck_assert_uint_eq(spec.period, 4000);
}
END_TEST

START_TEST(rates_and_wakeups)
{
	request.max_rate = 1000;
	request.flags = PP_EVENT_WAKEUP;
	accepted();
	ck_assert_uint_eq(spec.max_rate, 1000);
	ck_assert(spec.flags & PP_EVENT_WAKEUP);
}
END_TEST

static struct pp_spec is; /* of the event that is changed */

START_TEST(changes)
{
	struct pp_msg_change_request change = {
		.what = PP_CHANGE_FILTER | PP_CHANGE_BUFFER | PP_CHANGE_MAX_RATE,
		.data_size = 5000,
		.max_rate = 7,
		.filter = "a == 1 || b == 2",
	};

	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 0);
	ck_assert_uint_eq(spec.data_size, 8192);
	ck_assert_uint_eq(spec.max_rate, 7);
	ck_assert_str_eq(spec.filter, change.filter);
	ck_assert_uint_eq(parsed.n_sources, 0);
	ck_assert_uint_eq(parsed.n_nodes, 3);
	/* An empty filter is valid, too. */
	memset(change.filter, 0, sizeof(change.filter));
	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 0);
	ck_assert_uint_eq(parsed.n_nodes, 0);
	change.data_size = MAX_BUFFER + 1;
	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 -EDQUOT);
	change.what = 0;
	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 -EINVAL);
	change.what = 1U << 20;
	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 -EINVAL);
}
END_TEST

static void change_period(const char *event, uint32_t flags, uint64_t period, int error)
{
	struct pp_msg_change_request change = {
		.what = PP_CHANGE_PERIOD,
		.flags = flags,
		.period = period,
	};
	int r;

	snprintf(is.event, sizeof(is.event), "%s", event);
	r = resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed, sentence,
			   sizeof(sentence));
	ck_assert_msg(r == error, "%s: %d, %s", event, r, sentence);
	ck_assert_uint_eq(parsed.n_sources, 0);
}

/* As at a creation, by the event's text. */
START_TEST(changes_of_the_period)
{
	struct pp_msg_change_request change = { .what = PP_CHANGE_MAX_RATE,
						.flags = PP_EVENT_FREQ };

	change_period("cpu-clock", PP_EVENT_FREQ, 999, 0);
	ck_assert_uint_eq(spec.period, 999);
	ck_assert_uint_eq(spec.flags, PP_EVENT_FREQ);
	ck_assert_uint_eq(spec.samples, 999);
	change_period("cpu-clock,sched:*,task-clock", 0, 1000000, 0);
	ck_assert_uint_eq(spec.flags, 0);
	ck_assert_uint_eq(spec.samples, 2000);
	change_period("cpu-clock", 0, 0, 0); /* the default */
	ck_assert_uint_eq(spec.period, 4000);
	ck_assert_uint_eq(spec.flags, PP_EVENT_FREQ);
	change_period("cpu-clock", PP_EVENT_FREQ, 100001, -EINVAL);
	ck_assert_ptr_nonnull(strstr(sentence, "perf_event_max_sample_rate"));
	change_period("cpu-clock", 0, 1ULL << 63, -EINVAL);
	is.stack_user = 16384;
	change_period("cpu-clock", PP_EVENT_FREQ, 16384, 0);
	change_period("cpu-clock", PP_EVENT_FREQ, 16385, -EINVAL);
	is.stack_user = 0;
	is.flags = PP_EVENT_ADOPTED;
	change_period("cpu-clock", PP_EVENT_FREQ, 999, -EOPNOTSUPP);
	is.flags = 0;
	change_period("sched:sched_switch,sched:*", PP_EVENT_FREQ, 99, -EINVAL);
	ck_assert_ptr_nonnull(strstr(sentence, "sched:sched_switch is a tracepoint"));
	ck_assert_ptr_nonnull(strstr(sentence, "the frequency"));
	change_period("sched:sched_switch", 0, 0, -EINVAL);
	/* Of another change it is none. */
	ck_assert_int_eq(resolve_change(&change, &is, &machine, MAX_BUFFER, &spec, &parsed,
					sentence, sizeof(sentence)),
			 -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("specify");
	TCase *t = tcase_create("requests");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, defaults);
	tcase_add_test(t, names);
	tcase_add_test(t, cpus);
	tcase_add_test(t, buffers);
	tcase_add_test(t, periods);
	tcase_add_test(t, samples_are_counted);
	tcase_add_test(t, tracepoints_do_not_sample);
	tcase_add_test(t, entries_of_chains);
	tcase_add_test(t, user_stacks);
	tcase_add_test(t, user_stacks_are_not_copied_all_the_time);
	tcase_add_test(t, unknown_bits);
	tcase_add_test(t, text_is_parsed_elsewhere_but_told_here);
	tcase_add_test(t, selections);
	tcase_add_test(t, texts_that_are_too_long);
	tcase_add_test(t, mixtures);
	tcase_add_test(t, beside_nothing);
	tcase_add_test(t, targets);
	tcase_add_test(t, targets_that_become_filters);
	tcase_add_test(t, targets_that_are_none);
	tcase_add_test(t, breakpoints_count_every_hit);
	tcase_add_test(t, rates_and_wakeups);
	tcase_add_test(t, changes);
	tcase_add_test(t, changes_of_the_period);
	suite_add_tcase(s, t);
	return run_suite(s);
}
