// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counts programs per place and user, for events on a real bpffs: as if this kernel carried single
 * system calls on raw_syscalls, as kernels do that preempt their programs (syscall.h).
 */
#include <bpf/btf.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mount.h>

#include "daemon/broker/syntax/spec.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/kernel/kernel.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/crowd.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/task-start.h"

#include "needs.h" /* after these, because check.h has a macro fail() */

#define BROKER 61999
#define USER 61997
#define CARRIER "raw_syscalls:sys_enter"

static char registry[] = "/tmp/perfpersist-crowd-XXXXXX";
static struct pp_spec spec;
static struct pp_parsed parsed;
static struct failure failure;

/* Overrides libbpf's: kernel.c recognizes such a kernel by this function. */
__s32 btf__find_by_name_kind(const struct btf *btf, const char *name, __u32 kind)
{
	__s32 (*next)(const struct btf *, const char *, __u32) =
		(typeof(next))dlsym(RTLD_NEXT, "btf__find_by_name_kind");

	return strcmp(name, "trace_call_bpf_faultable") == 0 ? 1 : next(btf, name, kind);
}

static void setup(void)
{
	umount2(registry, MNT_DETACH); /* left by a failed test */
	ck_assert_int_eq(pins_open(registry), 0);
	ck_assert(kernel_preempts_syscalls());
	crowd_recount();
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* Creates like the engine; so many programs of one user may be in one place. target: NULL, or where it counts. */
static int create_in(const struct pp_msg_target *target, const char *name, const char *event,
		     uint32_t allowed)
{
	struct pp_msg_target in = target ? *target : (struct pp_msg_target){};
	const struct pp_allowance allowance = {
		.sources = UINT32_MAX,
		.creator_there = allowed,
		.all_there = UINT32_MAX,
		.work = UINT32_MAX,
		.perf_events = PP_BOUND_MAX,
	};
	char sentence[512];
	struct pp_event e;
	int r;

	spec = (struct pp_spec){
		.ns = "crowd",
		.data_size = 65536,
		.flags = PP_EVENT_ALL_CPUS | (target ? PP_EVENT_BOUND : 0),
		.mode = 0640,
		.creator = USER,
	};
	memset(&parsed, 0, sizeof(parsed));
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.event, sizeof(spec.event), "%s", event);
	r = pp_spec_parse(event, parsed.sources, PP_TERMS_MAX, sentence, sizeof(sentence));
	ck_assert_msg(r > 0, "%s", sentence);
	parsed.n_sources = r;
	if (parsed.sources[0].kind == PP_SOURCE_SAMPLING)
		spec.period = 1000000;
	r = event_create(&spec, &parsed, NULL, 0, &in, &allowance, BROKER, &e, &failure);
	if (r >= 0)
		crowd_add(&e);
	ck_assert_msg(r >= 0 || r == -EDQUOT, "%s", failure.sentence);
	return r;
}

static int create(const char *name, const char *event, uint32_t allowed)
{
	return create_in(NULL, name, event, allowed);
}

/* The carrier has n programs, before a recount and after it. */
static void expect_there(uint32_t n)
{
	for (unsigned again = 0; again < 2; again++, crowd_recount()) {
		ck_assert_int_eq(create("none", CARRIER, n), -EDQUOT);
		ck_assert_msg(strstr(failure.sentence, "'" CARRIER "'"), "%s", failure.sentence);
	}
	/* One more is allowed. */
	ck_assert_int_eq(create("carrier", CARRIER, n + 1), 0);
	ck_assert_int_eq(create("none", CARRIER, n + 1), -EDQUOT);
}

static const char *const carried[] = {
	"syscalls:sys_enter_acct",
	"syscalls:sys_enter_acc[t]",
	"syscalls:sys_enter_acct,syscalls:sys_enter_acct",
	"syscalls:sys_enter_acct,syscalls:sys_enter_a?ct",
	"syscalls:sys_enter_acct,syscalls:sys_exit_acct,syscalls:sys_enter_close",
	"syscalls:*_acct",
	"sys*:sys_enter_acc*",
};

/* System calls count once at their common place, however they are named. */
START_TEST(system_calls_are_where_all_are)
{
	ck_assert_int_eq(create("first", "sched:sched_process_wait", 8), 0);
	ck_assert_int_eq(create("call", carried[_i], 8), 0);
	expect_there(1);
}
END_TEST

/* Programs that every system call passes count beside them, even for the same event. */
START_TEST(beside_what_carries_them)
{
	ck_assert_int_eq(create("first", CARRIER "," CARRIER ",sched:sched_process_wait", 8), 0);
	ck_assert_int_eq(create("both", "syscalls:sys_enter_acct," CARRIER, 2), -EDQUOT);
	ck_assert_int_eq(create("both", CARRIER ",syscalls:sys_enter_acct", 2), -EDQUOT);
	ck_assert_int_eq(create("both", "syscalls:sys_enter_acct," CARRIER, 3), 0);
	expect_there(3);
}
END_TEST

/* Exits are at another place, even as a glob. */
START_TEST(returning_is_elsewhere)
{
	ck_assert_int_eq(create("exit", "syscalls:sys_exit_acct", 8), 0);
	ck_assert_int_eq(create("exits", "syscalls:sys_exit_acc*", 8), 0);
	ck_assert_int_eq(create("first", "sched:sched_process_wait", 8), 0);
	expect_there(0);
}
END_TEST

/* What a task starts inherits all its counters, whatever they count; those of the whole machine are elsewhere. */
START_TEST(what_counts_in_tasks_is_together)
{
	struct pp_msg_target mine = { .kind = PP_TARGET_PROCESS, .pid = (uint32_t)getpid() };
	struct pp_msg_target parent = { .kind = PP_TARGET_PROCESS, .pid = (uint32_t)getppid() };

	ck_assert_int_eq(pp_task_start(mine.pid, &mine.start, NULL), 0);
	ck_assert_int_eq(pp_task_start(parent.pid, &parent.start, NULL), 0);
	ck_assert_int_eq(create("first", "page-faults", 1), 0);
	ck_assert_int_eq(create_in(&mine, "faults", "page-faults", 1), 0);
	for (unsigned again = 0; again < 2; again++, crowd_recount()) {
		ck_assert_int_eq(create_in(&mine, "none", "context-switches", 1), -EDQUOT);
		ck_assert_int_eq(create_in(&parent, "none", "cpu-clock", 1), -EDQUOT);
		ck_assert_msg(strstr(failure.sentence, "1 counters in tasks"), "%s",
			      failure.sentence);
		ck_assert_int_eq(create_in(&mine, "none", "cpu-clock,task-clock", 2), -EDQUOT);
	}
	ck_assert_int_eq(create_in(&parent, "clock", "cpu-clock,task-clock", 3), 0);
	ck_assert_int_eq(create("second", "page-faults", 1), -EDQUOT);
	ck_assert_int_eq(create("second", "context-switches", 1), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("crowd");
	TCase *t = tcase_create("crowd");
	int r;

	log_open("test-crowd");
	need(no_bpffs());
	need(no_btf());
	need(no_tracefs());
	need(no_dir(registry));
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, system_calls_are_where_all_are, 0, ARRAY_SIZE(carried));
	tcase_add_test(t, beside_what_carries_them);
	tcase_add_test(t, returning_is_elsewhere);
	tcase_add_test(t, what_counts_in_tasks_is_together);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
