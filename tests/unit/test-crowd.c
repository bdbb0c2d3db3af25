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

/* Creates like the engine; so many programs of one user may be in one place. */
static int create(const char *name, const char *event, uint32_t allowed)
{
	const struct pp_allowance allowance = {
		.sources = UINT32_MAX,
		.creator_there = allowed,
		.all_there = UINT32_MAX,
		.work = UINT32_MAX,
	};
	char sentence[512];
	struct pp_event e;
	int r;

	spec = (struct pp_spec){
		.ns = "crowd",
		.data_size = 65536,
		.flags = PP_EVENT_ALL_CPUS,
		.mode = 0640,
		.creator = USER,
	};
	memset(&parsed, 0, sizeof(parsed));
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.event, sizeof(spec.event), "%s", event);
	r = pp_spec_parse(event, parsed.sources, PP_TERMS_MAX, sentence, sizeof(sentence));
	ck_assert_msg(r > 0, "%s", sentence);
	parsed.n_sources = r;
	r = event_create(&spec, &parsed, NULL, 0, NULL, &allowance, BROKER, &e, &failure);
	if (r >= 0)
		crowd_add(&e);
	ck_assert_msg(r >= 0 || r == -EDQUOT, "%s", failure.sentence);
	return r;
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
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
