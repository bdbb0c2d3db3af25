/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kills a process at the entry of its N-th system call, with ptrace(2): what strace's
 * inject=…:signal=KILL:when=N does, without the time that starting strace takes. Calls that
 * change nothing outside the process are passed over, since death before one of them looks
 * like death before the next. Knows nothing of what the process does.
 */
#ifndef PP_TEST_TRACER_H
#define PP_TEST_TRACER_H

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/integration/services.h"

/* clang-format off */
static const int inert_calls[] = {
#ifdef SYS_poll
	SYS_poll, SYS_epoll_wait, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_open,
	SYS_arch_prctl,
#endif
	SYS_read, SYS_pread64, SYS_close, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_brk,
	SYS_madvise, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_statfs, SYS_faccessat, SYS_faccessat2,
	SYS_uname, SYS_getrandom, SYS_futex, SYS_getpid, SYS_gettid, SYS_getdents64, SYS_readlinkat,
	SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_clock_gettime, SYS_openat, SYS_prlimit64,
	SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_geteuid, SYS_getuid, SYS_getgid,
	SYS_getegid, SYS_sched_getaffinity, SYS_ppoll, SYS_epoll_pwait, SYS_epoll_pwait2,
	SYS_getsockopt, SYS_getsockname, SYS_restart_syscall, /* waiting, once more */
	SYS_wait4 /* for what is dead already */
};
/* clang-format on */

static const struct {
	int nr;
	const char *name;
} known_calls[] = {
	{ SYS_bpf, "bpf" },
	{ SYS_perf_event_open, "perf_event_open" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_mkdirat, "mkdir" },
	{ SYS_unlinkat, "unlink" },
	{ SYS_symlinkat, "symlink" },
	{ SYS_renameat2, "renameat2" },
	{ SYS_fchmodat, "chmod" },
	{ SYS_fchownat, "chown" },
#ifdef SYS_mkdir
	{ SYS_mkdir, "mkdir" },
	{ SYS_rmdir, "rmdir" },
	{ SYS_unlink, "unlink" },
	{ SYS_symlink, "symlink" },
	{ SYS_chmod, "chmod" },
	{ SYS_chown, "chown" },
#endif
	{ SYS_recvfrom, "recv" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_sendto, "send" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_accept4, "accept" },
	{ SYS_clone, "clone" },
	{ SYS_mount, "mount" },
	{ SYS_unshare, "unshare" },
	{ SYS_chdir, "chdir" },
	{ SYS_flock, "flock" },
	{ SYS_close_range, "close_range" },
	{ SYS_epoll_ctl, "epoll_ctl" },
	{ SYS_timerfd_settime, "timerfd_settime" },
	{ SYS_exit_group, "exit_group" },
	{ SYS_write, "write" },
};

/* Where a scenario's kills hit: how often at which call. */
struct tally {
	unsigned n, at[ARRAY_SIZE(known_calls)], elsewhere;
};

static inline void tally_add(struct tally *t, int nr)
{
	t->n++;
	for (size_t i = 0; i < ARRAY_SIZE(known_calls); i++)
		if (known_calls[i].nr == nr) {
			t->at[i]++;
			return;
		}
	t->elsewhere++;
}

static inline void tally_print(const struct tally *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_calls); i++)
		if (t->at[i])
			printf(" %s %u", known_calls[i].name, t->at[i]);
	if (t->elsewhere)
		printf(" others %u", t->elsewhere);
}

static inline bool call_is_inert(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(inert_calls); i++)
		if (inert_calls[i] == nr)
			return true;
	return false;
}

/* Stops a process that is traced, wherever it is, and waits until it has. */
static inline void tracer_stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status))
		die("cannot stop process %d: %m", pid);
}

/* calls: stop it at each system call; else only where it forks, its child being traced, too. */
static inline void tracer_begin(pid_t pid, bool calls)
{
	long options = calls ? PTRACE_O_TRACESYSGOOD : PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK;

	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
		die("cannot trace process %d: %m", pid);
	tracer_stop(pid);
	ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, 0);
}

static inline void tracer_end(pid_t pid)
{
	tracer_stop(pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* The call that a stopped process is about to enter, if it counts; else -1. */
static inline int tracer_entry(pid_t pid, int status)
{
	struct __ptrace_syscall_info info = { 0 };

	if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY || call_is_inert((int)info.entry.nr))
		return -1;
	return (int)info.entry.nr;
}

/* Lets it go on to its next stop; a signal that stopped it is delivered. */
static inline void tracer_go_on(pid_t pid, int status, bool calls)
{
	int sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80) || status >> 16)
		sig = 0;
	ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, sig);
}

#endif
