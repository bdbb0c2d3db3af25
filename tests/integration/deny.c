/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a command as on a kernel that lacks something: system calls fail, in the command and in all
 * its children, as if the kernel did not have them or did not allow them.
 *
 *   deny bpf=ENOSYS,fsmount=EPERM COMMAND [ARG...]
 *
 * It uses a seccomp filter, which neither slows down nor disturbs the allowed calls.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/macro.h"

#define RULES_MAX 16

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "bpf", SYS_bpf },
	{ "fsmount", SYS_fsmount },
	{ "mount", SYS_mount },
	{ "perf_event_open", SYS_perf_event_open },
};

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "EACCES", EACCES }, { "ENODEV", ENODEV }, { "ENOMEM", ENOMEM },
	{ "ENOSYS", ENOSYS }, { "EPERM", EPERM },
};

/* Translates one "CALL=ERROR" into two instructions; returns 0 or -EINVAL. */
static int add_rule(const char *rule, struct sock_filter *ret)
{
	const char *equals = strchr(rule, '=');
	int call = -1, r = -1;

	for (size_t i = 0; equals && i < ARRAY_SIZE(calls); i++)
		if (strlen(calls[i].name) == (size_t)(equals - rule) &&
		    !strncmp(calls[i].name, rule, (size_t)(equals - rule)))
			call = calls[i].number;
	for (size_t i = 0; equals && i < ARRAY_SIZE(errors); i++)
		if (!strcmp(errors[i].name, equals + 1))
			r = errors[i].number;
	if (call < 0 || r < 0)
		return -EINVAL;
	ret[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
	ret[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)r);
	return 0;
}

static int install(char *rules)
{
	struct sock_filter code[2 * RULES_MAX + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = 1, .filter = code };

	for (char *save, *rule = strtok_r(rules, ",", &save); rule;
	     rule = strtok_r(NULL, ",", &save)) {
		if (program.len > 2 * RULES_MAX || add_rule(rule, code + program.len) < 0)
			return -EINVAL;
		program.len += 2;
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	int r = argc < 3 ? -EINVAL : install(argv[1]);

	if (r == -EINVAL) {
		fprintf(stderr, "usage: deny CALL=ERROR[,CALL=ERROR...] COMMAND [ARG...]\n");
		return 2;
	}
	if (r < 0) {
		fprintf(stderr, "deny: cannot install the filter: %s\n", strerror(-r));
		return 2;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "deny: cannot run %s: %m\n", argv[2]);
	return 127;
}
