/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For reader-cost.c: the recorders, a way to fire a known number of events for each, and the
 * process on the measured CPU that fires them. Knows no readers.
 */
#pragma once

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/integration/observe.h"

#define COMM "pp-victim" /* of the worker */
#define OURS "COMM == \"" COMM "\""
#define WHILE_OURS "COMM ~ \"pp-*\"" /* of readers too: events that interrupt them */
#define PAGES 256
#define TICK_NS 100000	 /* of the timer that interrupts this CPU */
#define CLOCK_NS 1000000 /* the period of clock sampling */

enum state { STARTING, READY, GO, DONE };

struct shared {
	_Atomic int state;
	_Atomic unsigned reading; /* readers that have begun */
	_Atomic uint64_t calls, copies, snapshots, lookups;
};

static struct {
	const char *instance, *copies, *live;
	int cpu;
	struct perfpersist *p;
	struct shared *shared;
	char uprobe[PATH_MAX + 64];
	int ticks;  /* a perf event that interrupts the CPU every TICK_NS while it is enabled */
	int clock;  /* counts what cpu-clock counts there */
	bool brief; /* few events and few recorders */
	bool failed;
} test;

static _printf_(1, 2) void fault(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	test.failed = true;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ── the events ─────────────────────────────────────────────────────────────────────────── */

static void make_calls(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		close(-1);
}

static void make_faults(uint64_t n)
{
	static volatile char *pages;
	long page = sysconf(_SC_PAGESIZE);

	if (!pages) {
		pages = mmap(NULL, (size_t)(PAGES * page), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED ||
		    madvise((void *)pages, (size_t)(PAGES * page), MADV_NOHUGEPAGE) < 0)
			die("no memory to touch: %m");
	}
	for (uint64_t i = 0; i < n; i++) {
		if (i % PAGES == 0)
			madvise((void *)pages, (size_t)(PAGES * page), MADV_DONTNEED);
		pages[(long)(i % PAGES) * page] = 1;
	}
}

/* Not static, so that the probe finds its name. */
void reader_cost_probed(uint64_t i);
__attribute__((noinline)) void reader_cost_probed(uint64_t i)
{
	__asm__ volatile("" : : "r"(i) : "memory");
}

static void hit_probe(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		reader_cost_probed(i);
}

/* ── the recorders ──────────────────────────────────────────────────────────────────────── */

/* How the test knows the true number of events. */
enum truth {
	BY_WORKER, /* the worker counts its calls */
	BY_TP_BTF, /* an event on the same tracepoint that nothing shuts out */
	BY_CLOCK,  /* a counter of the same clock */
};

static const struct victim {
	const char *name, *event, *filter;
	uint32_t recorder, flags;
	uint64_t period, n;
	enum truth truth;
	void (*make)(uint64_t n);
	bool immune;
} victims[] = {
	{ "tp_btf, system calls", "raw_syscalls:sys_enter", OURS, PERFPERSIST_RECORDER_TP_BTF, 0, 0,
	  400000, BY_WORKER, make_calls, true },
	{ "generic, system calls", "raw_syscalls:sys_enter", OURS, PERFPERSIST_RECORDER_GENERIC,
	  PERFPERSIST_GENERIC, 0, 400000, BY_WORKER, make_calls, false },
	{ "generic, interrupts", "timer:hrtimer_expire_entry", WHILE_OURS,
	  PERFPERSIST_RECORDER_GENERIC, PERFPERSIST_GENERIC, 0, 4000, BY_TP_BTF, NULL, false },
	{ "overflow, page faults", "page-faults", OURS, PERFPERSIST_RECORDER_OVERFLOW, 0, 1, 200000,
	  BY_WORKER, make_faults, false },
	{ "overflow, clock", "cpu-clock", NULL, PERFPERSIST_RECORDER_OVERFLOW, 0, CLOCK_NS, 600,
	  BY_CLOCK, NULL, false },
	{ "uprobe", test.uprobe, NULL, PERFPERSIST_RECORDER_PROBE, 0, 0, 100000, BY_WORKER,
	  hit_probe, true },
};

static struct perfpersist_event *create(const char *ns, const char *name, const char *event,
					const char *filter, uint64_t period, uint32_t flags,
					uint32_t recorder, uint64_t buffer)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_create_options o = {
		.sz = sizeof(o),
		.event = event,
		.filter = filter,
		.period = period,
		.flags = flags,
		.buffer = buffer,
	};
	char cpu[16], full[160];

	snprintf(cpu, sizeof(cpu), "%d", test.cpu);
	o.cpus = cpu;
	if (perfpersist_create(test.p, ns, name, &o, &info) < 0)
		die("%s", perfpersist_error(test.p));
	if (info.recorder != recorder)
		die("%s is recorded by recorder %u, not by %u", event, info.recorder, recorder);
	snprintf(full, sizeof(full), "%s/%s", ns, name);
	return open_event(test.p, full);
}

static void delete_event(const char *ns, const char *name, struct perfpersist_event *e)
{
	perfpersist_event_free(e);
	if (perfpersist_delete(test.p, ns, name, NULL) < 0)
		die("%s", perfpersist_error(test.p));
}

/* ── the worker ─────────────────────────────────────────────────────────────────────────── */

/* Between its events the worker makes no system call, and keeps this CPU from idling. */
static pid_t start_worker(const struct victim *v)
{
	pid_t pid;

	test.shared->state = STARTING;
	pid = fork_helper();
	if (pid)
		return pid;
	prctl(PR_SET_NAME, COMM);
	pin_to(test.cpu);
	if (v->make)
		v->make(2 * PAGES);
	test.shared->state = READY;
	while (test.shared->state != GO)
		;
	if (v->make)
		v->make(v->n);
	test.shared->state = DONE;
	for (;;)
		;
}

static void await_state(enum state state)
{
	while (test.shared->state != (int)state)
		sched_yield();
}
