/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker of exact.c: a process that makes N system calls whose arguments tell the run and the
 * number of each call. Knows nothing of events.
 */
#pragma once

#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/macro.h"

#define MARK 0x7065727369737421L /* the second argument of each counted call */
#define MIX 0x9e3779b97f4a7c15UL
#define HOP 7 /* calls before the wandering worker moves to the next CPU */
#define WAIT_NS 10000000000LL
/* For a parent that is gone: one that lives may wait long for a CPU. */
#define LINGER_NS 2000000000LL

/* Shared by the worker and its parent; everything but the flags is set before the worker starts. */
struct work {
	const int *cpus;
	size_t n_cpus; /* 1: it does not move */
	long n, run;
	bool alone; /* other processes have another CPU */
	atomic_bool *done, *released;
};

static inline void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static inline void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ── the worker ─────────────────────────────────────────────────────────────────────────── */

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("cannot run on CPU %d: %m", cpu);
}

/* Fails with EBADF, whatever the number; the other arguments exist only for the record. */
static inline void telling_call(long i, long run, int cpu)
{
	syscall(SYS_close, ~i, MARK, i, cpu, i * MIX, run);
}

static inline void work(const struct work *w)
{
	const struct sched_param param = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };
	int cpu = w->cpus[0];
	int64_t end;

	pin(cpu);
	if (w->alone)
		sched_setscheduler(0, SCHED_FIFO, &param);
	for (long i = 0; i < w->n; i++) {
		if (w->n_cpus > 1 && i % HOP == 0)
			pin(cpu = w->cpus[(size_t)(i / HOP) % w->n_cpus]);
		telling_call(i, w->run, cpu);
	}
	atomic_store(w->done, true);
	/* Makes no system call, so that nothing follows the last counted call. */
	end = now() + LINGER_NS;
	while (w->alone && !atomic_load(w->released) && now() < end)
		;
	_exit(0);
}

static inline pid_t start_work(const struct work *w)
{
	int64_t end = now() + WAIT_NS;
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %m");
	if (pid == 0)
		work(w);
	while (!atomic_load(w->done)) {
		if (now() > end)
			die("the worker does not get through its %ld calls", w->n);
		sched_yield();
	}
	return pid;
}

static inline void end_work(const struct work *w, pid_t pid)
{
	int status;

	atomic_store(w->released, true);
	if (waitpid(pid, &status, 0) < 0 || status)
		die("the worker ended with %#x", status);
}
