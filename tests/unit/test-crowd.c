// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whose programs are counted where, of events on a real bpffs: as if this kernel carried single
 * system calls on raw_syscalls, as those do that preempt their programs (syscall.h).
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

#include "needs.h" /* after these, for check.h has a macro fail() */

#define BROKER 61999
#define USER 61997
#define CARRIER "raw_syscalls:sys_enter"

static char registry[] = "/tmp/perfpersist-crowd-XXXXXX";
static struct pp_spec spec;
static struct pp_parsed parsed;
static struct failure failure;

/* In front of libbpf's own: the function by whose presence kernel.c knows such a kernel. */
__s32 btf__find_by_name_kind(const struct btf *btf, const char *name, __u32 kind)
{
	__s32 (*next)(const struct btf *, const char *, __u32) =
		(typeof(next))dlsym(RTLD_NEXT, "btf__find_by_name_kind");

	return strcmp(name, "trace_call_bpf_faultable") == 0 ? 1 : next(btf, name, kind);
}

static void setup(void)
{
	umount2(registry, MNT_DETACH); /* of a test that failed */
	ck_assert_int_eq(pins_open(registry), 0);
	ck_assert(kernel_preempts_syscalls());
	crowd_recount();
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* As the engine does it; so many programs of one user may be in a place. */
static int create(const char *name, const char *event, uint32_t allowed)
{
	const struct pp_allowance allowance = { UINT32_MAX, allowed, UINT32_MAX, UINT32_MAX };
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
	r = event_create(&spec, &parsed, &allowance, BROKER, &e, &failure);
	if (r >= 0)
		crowd_add(&e);
	ck_assert_msg(r >= 0 || r == -EDQUOT, "%s", failure.sentence);
	return r;
}

/* There are so many on the carrier, before all is forgotten and after. */
static void expect_there(uint32_t n)
{
	for (unsigned again = 0; again < 2; again++, crowd_recount()) {
		ck_assert_int_eq(create("none", CARRIER, n), -EDQUOT);
		ck_assert_msg(strstr(failure.sentence, "'" CARRIER "'"), "%s", failure.sentence);
	}
	/* One more may be. */
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

/* System calls, however they were named, are where all of them are: once. */
START_TEST(system_calls_are_where_all_are)
{
	ck_assert_int_eq(create("first", "sched:sched_process_wait", 8), 0);
	ck_assert_int_eq(create("call", carried[_i], 8), 0);
	expect_there(1);
}
END_TEST

/* What everybody passes anyway is there beside them, of the same event, too. */
START_TEST(beside_what_carries_them)
{
	ck_assert_int_eq(create("first", CARRIER "," CARRIER ",sched:sched_process_wait", 8), 0);
	ck_assert_int_eq(create("both", "syscalls:sys_enter_acct," CARRIER, 2), -EDQUOT);
	ck_assert_int_eq(create("both", CARRIER ",syscalls:sys_enter_acct", 2), -EDQUOT);
	ck_assert_int_eq(create("both", "syscalls:sys_enter_acct," CARRIER, 3), 0);
	expect_there(3);
}
END_TEST

/* Those that return are elsewhere, also as a glob. */
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
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, system_calls_are_where_all_are, 0, ARRAY_SIZE(carried));
	tcase_add_test(t, beside_what_carries_them);
	tcase_add_test(t, returning_is_elsewhere);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
