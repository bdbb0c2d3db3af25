/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A unit test's needs of the machine. Without all of its needs a test is a skip (exit 77, its last
 * line is the reason); each case that is left out prints a line "SKIP: what: why", which
 * tests/run.sh counts.
 *
 * Call these in main(), before the suite runs, because libcheck forks its cases.
 *
 *  *	need(no_root());			 without it the whole program skips
 *  *	add_test_unless(no_btf(), t, a_case);	 without it this case is left out
 *  *	return run_suite(s);
 *
 * Each no_…() returns NULL if the thing is available, else the reason why not.
 */
#pragma once

#include <check.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/macro.h"

/* libcheck writes down each assertion that holds, to tell where a case crashed, and reads all of it at the
 * end: in a loop that takes most of the time. A core, or ASan, tells that better. */
#define _mark_point(file, line) ((void)0)

/* ── skipping ───────────────────────────────────────────────────────────────────────────── */

/* Skips the whole program if there is a reason. */
static _unused_ void need(const char *reason)
{
	if (!reason)
		return;
	puts(reason);
	exit(77);
}

static char last_reason[512];

/* Prints that this part is left out, if there is a reason. */
static _unused_ bool is_left_out(const char *what, const char *reason)
{
	if (!reason)
		return false;
	snprintf(last_reason, sizeof(last_reason), "%s", reason);
	printf("SKIP: %s: %s\n", what, reason);
	fflush(stdout); /* once: the cases are forked */
	return true;
}

#define add_test_unless(reason, tcase, test)         \
	do {                                         \
		if (!is_left_out(#test, reason))     \
			tcase_add_test(tcase, test); \
	} while (0)

#define add_loop_test_unless(reason, tcase, test, from, to)         \
	do {                                                        \
		if (!is_left_out(#test, reason))                    \
			tcase_add_loop_test(tcase, test, from, to); \
	} while (0)

/* libcheck ends a case after four seconds. How long one takes says nothing on a busy machine: this
 * is for those that hang, a little before the runner ends the whole test. */
static __attribute__((constructor)) void be_patient(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "840", 0);
}

/* Runs the suite, and returns main()'s status. */
static _unused_ int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int run, failed;

	srunner_run_all(r, CK_ENV);
	run = srunner_ntests_run(r);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	if (run == 0)
		printf("no case was run%s%s\n", *last_reason ? ", the last one " : "", last_reason);
	return failed ? EXIT_FAILURE : run ? EXIT_SUCCESS : 77;
}

/* Whether to run everything; the short length tries each thing in some way. */
static _unused_ bool is_full_length(void)
{
	const char *length = getenv("TEST_LENGTH");

	return length && !strcmp(length, "full");
}

/*
 * So many of n records may be missed because writers of one ring come between each other's four tries: none; in an
 * emulated guest, whose timers fire between any two instructions, it is one of some 100,000.
 */
static _unused_ uint64_t nested_out(uint64_t n)
{
	return getenv("PP_TEST_EMULATED") ? n / 1000 : 0;
}

/* Every so many of the cases that are alike are tried: all at full length, each `usual`th at the short one. */
static _unused_ unsigned stride(unsigned usual)
{
	return is_full_length() ? 1 : usual;
}

/* ── what there is ──────────────────────────────────────────────────────────────────────── */

static _unused_ const char *no_root(void)
{
	return geteuid() == 0 ? NULL : "needs root";
}

/* "what: strerror", for functions that return it. */
static const char *reason_of(const char *what, int error)
{
	static char reason[128];

	snprintf(reason, sizeof(reason), "%s: %s", what, strerror(error));
	return reason;
}

/* Mounts that this program makes from here on are private, and end with the program. */
static _unused_ const char *no_mounts(void)
{
	static bool is_private;

	if (geteuid() != 0)
		return "needs root, to mount";
	if (!is_private &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return reason_of("needs a mount namespace of its own", errno);
	is_private = true;
	return NULL;
}

/* Mounts it for this program if it is not mounted. */
static _unused_ const char *no_tracefs(void)
{
	static const char place[] = "/sys/kernel/tracing";
	const char *reason;

	if (access("/sys/kernel/tracing/events", R_OK | X_OK) == 0)
		return NULL;
	reason = no_mounts();
	if (reason)
		return geteuid() == 0 ? reason : "needs root, to read tracefs";
	return mount("tracefs", place, "tracefs", 0, NULL) == 0
		       ? NULL
		       : reason_of("needs tracefs, which cannot be mounted", errno);
}

static _unused_ const char *no_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0
		       ? NULL
		       : "needs a kernel with BTF (/sys/kernel/btf/vmlinux)";
}

/* Whether this process can load a program for perf events, which needs the most rights. */
static _unused_ const char *no_bpf(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int fd;

	if (geteuid() != 0)
		return "needs root, to load BPF programs";
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (uint64_t)(uintptr_t)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	attr.license = (uint64_t)(uintptr_t) "GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return reason_of("needs to load BPF programs", errno);
	close(fd);
	return NULL;
}

/* A bpffs that only this program sees, with its pins. */
static _unused_ const char *no_bpffs(void)
{
	const char *reason = no_bpf();

	return reason ?: no_mounts();
}

/* A new directory by this template, as mkdtemp(3) makes it; the caller removes it. */
static _unused_ const char *no_dir(char *template)
{
	return mkdtemp(template) ? NULL : reason_of(template, errno);
}

/* Looks in PATH. */
static _unused_ const char *no_program(const char *name)
{
	static char reason[64];
	_cleanup_free_ char *dirs = strdup(getenv("PATH") ?: "/usr/bin:/bin");
	char *rest = NULL;

	for (char *dir = strtok_r(dirs, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest)) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", dir, name);
		if (access(file, X_OK) == 0)
			return NULL;
	}
	snprintf(reason, sizeof(reason), "needs the program %s", name);
	return reason;
}
