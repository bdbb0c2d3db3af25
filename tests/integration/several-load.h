/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The load of several-check.c: on each CPU a worker that makes known calls, and a disturber that
 * sleeps, wakes and forks beside it until all workers are done, at most once per call: on a busy
 * machine it would fill the rings while the worker waits. Knows nothing of events.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/integration/exact-worker.h"

#define LOAD_CPUS_MAX 4
#define TICK_EVERY 16 /* calls between two of pp_tick() */

struct load {
	int cpus[LOAD_CPUS_MAX];
	size_t n_cpus;
	long calls;
	pid_t workers[LOAD_CPUS_MAX];
	atomic_int *done;
};

/* The target of a uprobe. */
long pp_tick(long number, int cpu);

__attribute__((noinline)) long pp_tick(long number, int cpu)
{
	__asm__ volatile("" : "+r"(number) : "r"(cpu) : "memory");
	return number;
}

static inline void load_work(const struct load *l, int cpu)
{
	for (long i = 0; i < l->calls; i++) {
		if (i % TICK_EVERY == 0)
			pp_tick(i, cpu);
		telling_call(i, 0, cpu);
	}
	atomic_fetch_add(l->done, 1);
	_exit(0);
}

static inline void load_disturb(const struct load *l)
{
	const struct timespec nap = { .tv_nsec = 20000 };

	for (long i = 0; i < l->calls && atomic_load(l->done) < (int)l->n_cpus; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		if (i % 64 == 0) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
	}
	_exit(0);
}

static inline pid_t load_fork(int cpu)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %m");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(cpu);
	}
	return pid;
}

/* Runs until every worker has made all its calls. */
static inline void load_run(struct load *l)
{
	pid_t disturbers[LOAD_CPUS_MAX];
	int status;

	l->done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->done == MAP_FAILED)
		die("mmap: %m");
	for (size_t i = 0; i < l->n_cpus; i++) {
		disturbers[i] = load_fork(l->cpus[i]);
		if (disturbers[i] == 0)
			load_disturb(l);
	}
	for (size_t i = 0; i < l->n_cpus; i++) {
		l->workers[i] = load_fork(l->cpus[i]);
		if (l->workers[i] == 0)
			load_work(l, l->cpus[i]);
	}
	for (size_t i = 0; i < l->n_cpus; i++)
		if (waitpid(l->workers[i], &status, 0) < 0 || status ||
		    waitpid(disturbers[i], &status, 0) < 0 || status)
			die("the load on CPU %d ended with %#x", l->cpus[i], status);
}
