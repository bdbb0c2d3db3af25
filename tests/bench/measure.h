/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the benchmarks: clocks, pinning to a CPU, quartiles, and result lines.
 *
 * A result is one line on stdout, "KEY MEDIAN LOWER-QUARTILE UPPER-QUARTILE", for run.sh to judge.
 * A benchmark that cannot measure prints why and exits.
 */
#pragma once

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

#define NAMESPACE "bench"
#define CPUS_MAX 4096

__attribute__((noreturn)) _printf_(1, 2) static inline void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static inline uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("cannot run on CPU %d: %m", cpu);
}

/* Fills cpus with at most max CPUs that this process may run on; returns how many. */
static inline size_t usable_cpus(int *cpus, size_t max)
{
	cpu_set_t set;
	size_t n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		die("cannot tell which CPUs there are: %m");
	for (int cpu = 0; cpu < CPU_SETSIZE && n < max; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	return n;
}

/* A system call that only enters and leaves the kernel. */
static inline void call(void)
{
	close(-1);
}

static inline struct perfpersist *connect_to(const char *instance)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct perfpersist *p;

	if (perfpersist_connect(&opts, &p) < 0)
		die("%s", perfpersist_error(NULL));
	return p;
}

static inline struct perfpersist_event *open_event(struct perfpersist *p, const char *name)
{
	struct perfpersist_event *e;

	if (perfpersist_open(p, NAMESPACE, name, &e) < 0)
		die("%s", perfpersist_error(p));
	return e;
}

/* ── results ────────────────────────────────────────────────────────────────────────────── */

static inline int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* values must be sorted. Interpolates linearly between two values. */
static inline double quantile(const double *values, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? values[i] + (at - (double)i) * (values[i + 1] - values[i]) : values[i];
}

static inline double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return quantile(values, n, 0.5);
}

static inline void print_result(const char *key, double *values, size_t n)
{
	double middle = median(values, n);

	printf("%s %.2f %.2f %.2f\n", key, middle, quantile(values, n, 0.25),
	       quantile(values, n, 0.75));
}
