/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kills a process at the entry of its N-th system call, with ptrace(2): like strace's
 * inject=…:signal=KILL:when=N, without the time that starting strace takes. Skips calls that change
 * nothing outside the process, because a death before one of them looks like a death before the
 * next. Knows nothing of what the process does.
 */
#pragma once

#include <linux/bpf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/integration/services.h"

/* A call as a number: that of the system call, or of bpf(2)'s command. */
#define BPF_COMMAND(command) (0x10000 + (command))

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
	SYS_wait4, /* for dead children */
	SYS_prctl, SYS_fcntl, SYS_dup3, SYS_umask, SYS_sysinfo, SYS_signalfd4, SYS_eventfd2,
	SYS_epoll_ctl, SYS_timerfd_settime, SYS_close_range, SYS_chdir, SYS_perf_event_open
};

/* Commands of bpf(2): the object that they create is private until it is pinned or attached. */
static const int inert_commands[] = {
	BPF_COMMAND(BPF_MAP_CREATE), BPF_COMMAND(BPF_MAP_LOOKUP_ELEM), BPF_COMMAND(BPF_PROG_LOAD),
	BPF_COMMAND(BPF_BTF_LOAD), BPF_COMMAND(BPF_PROG_BIND_MAP), BPF_COMMAND(BPF_ITER_CREATE),
	BPF_COMMAND(BPF_OBJ_GET), BPF_COMMAND(BPF_OBJ_GET_INFO_BY_FD),
	BPF_COMMAND(BPF_MAP_GET_FD_BY_ID), BPF_COMMAND(BPF_MAP_GET_NEXT_ID),
	BPF_COMMAND(BPF_PROG_GET_FD_BY_ID)
};

static const int waiting_calls[] = {
#ifdef SYS_poll
	SYS_poll, SYS_epoll_wait,
#endif
	SYS_ppoll, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_recvmsg, SYS_recvfrom
};
/* clang-format on */

static const struct {
	int call;
	const char *name;
} known_calls[] = {
	{ BPF_COMMAND(BPF_OBJ_PIN), "pin" },
	{ BPF_COMMAND(BPF_MAP_FREEZE), "freeze" },
	{ BPF_COMMAND(BPF_MAP_UPDATE_ELEM), "update" },
	{ BPF_COMMAND(BPF_MAP_UPDATE_BATCH), "update-batch" },
	{ BPF_COMMAND(BPF_MAP_DELETE_ELEM), "delete" },
	{ BPF_COMMAND(BPF_LINK_CREATE), "link" },
	{ BPF_COMMAND(BPF_RAW_TRACEPOINT_OPEN), "attach" },
	{ BPF_COMMAND(BPF_PROG_TEST_RUN), "run" },
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
	{ SYS_flock, "flock" },
	{ SYS_exit_group, "exit_group" },
	{ SYS_write, "write" },
};

/* Counts the kills of a scenario at each call. */
struct tally {
	unsigned n, at[ARRAY_SIZE(known_calls)], elsewhere;
};

/* Whether a call is what known_calls name so. */
static inline bool call_is(int call, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_calls); i++)
		if (known_calls[i].call == call)
			return !strcmp(known_calls[i].name, name);
	return false;
}

static inline void tally_add(struct tally *t, int call)
{
	t->n++;
	for (size_t i = 0; i < ARRAY_SIZE(known_calls); i++)
		if (known_calls[i].call == call) {
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

/* ── which steps to die at ──────────────────────────────────────────────────────────────── */

/*
 * Chooses the calls of a sequence to kill at. All of them; or, with every > 1: each rename and the
 * call after it, where the visible state changes; the first call of each kind, so that no phase is
 * left out; and every every-th of the rest, with a different start in each scenario.
 */
struct choice {
	unsigned every, n, seen[ARRAY_SIZE(known_calls) + 1];
	bool renamed; /* by the previous call */
};

static inline bool choice_take(struct choice *c, int call)
{
	bool renamed = c->renamed;
	size_t i = 0;

	while (i < ARRAY_SIZE(known_calls) && known_calls[i].call != call)
		i++;
	c->renamed = call == SYS_renameat2;
	return c->seen[i]++ == 0 || c->n++ % c->every == 0 || c->renamed || renamed;
}

/* ── tracing ────────────────────────────────────────────────────────────────────────────── */

static inline bool is_among(int n, const int *list, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (list[i] == n)
			return true;
	return false;
}

/* Stops a traced process, wherever it is, and waits until it has stopped. */
static inline void tracer_stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status))
		die("cannot stop process %d: %m", pid);
}

/* calls: stops it at each system call; else only where it forks, and traces the child, too. */
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

/* The call that a stopped process is about to enter; -1: none. */
static inline int tracer_entry(pid_t pid, int status)
{
	struct __ptrace_syscall_info info = { 0 };

	if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
	    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return -1;
	if (info.entry.nr != SYS_bpf)
		return (int)info.entry.nr;
	return BPF_COMMAND((int)info.entry.args[0]);
}

/* Whether the call changes something outside the process. */
static inline bool call_counts(int call)
{
	return call >= 0 && !is_among(call, inert_calls, ARRAY_SIZE(inert_calls)) &&
	       !is_among(call, inert_commands, ARRAY_SIZE(inert_commands));
}

/* Whether the call waits for other processes, and not for the kernel. */
static inline bool call_waits(int call)
{
	return is_among(call, waiting_calls, ARRAY_SIZE(waiting_calls));
}

/* Called before tracer_wait(): keeps SIGCHLD pending until it is waited for. */
static inline void tracer_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Like waitpid(2) for any process; returns 0 if nothing happens within 2 ms. */
static inline pid_t tracer_wait(int *ret_status)
{
	static const struct timespec little = { .tv_nsec = 2000000 };
	pid_t pid = waitpid(-1, ret_status, __WALL | WNOHANG);
	sigset_t set;

	if (pid != 0)
		return pid;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &little);
	return waitpid(-1, ret_status, __WALL | WNOHANG);
}

/* Resumes it until its next stop, and delivers a signal that stopped it. */
static inline void tracer_go_on(pid_t pid, int status, bool calls)
{
	int sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80) || status >> 16)
		sig = 0;
	ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, sig);
}
