/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event on raw_syscalls:sys_enter, for exact.c and exact-wander.c: creates it, opens it by name,
 * and checks its records of the worker's calls. Knows the public library only.
 */
#pragma once

#include <string.h>
#include <sys/syscall.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "tests/integration/exact-worker.h"

#define ATTEMPTS 50 /* per run, until no other process interferes */
#define CPUS_MAX 4

/* The tracepoint's payload. */
struct sys_enter {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
	int64_t id;
	uint64_t args[6];
};

struct event {
	struct perfpersist *p;
	const char *ns;
	char name[64];
	uint64_t size;
	uint64_t missed; /* at the last opening */
	struct perfpersist_event *opened;
	struct perfpersist_snapshot *snapshot;
};

static inline void event_close(struct event *e)
{
	perfpersist_snapshot_free(e->snapshot);
	perfpersist_event_free(e->opened);
	e->snapshot = NULL;
	e->opened = NULL;
}

/* Opens the event by name. Returns how many events it missed since the last opening, or the highest
 * possible number where the kernel does not count. */
static inline uint64_t event_open(struct event *e)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t before = e->missed;

	if (perfpersist_open(e->p, e->ns, e->name, &e->opened) < 0)
		die("%s", perfpersist_error(e->p));
	if (perfpersist_event_info(e->opened, &info) < 0)
		die("%s", perfpersist_error(NULL));
	e->missed = info.missed;
	return info.missed_unknown ? UINT64_MAX : e->missed - before;
}

static inline size_t ring_of(struct event *e, int cpu)
{
	for (size_t i = 0; i < perfpersist_event_rings(e->opened); i++)
		if (perfpersist_ring_cpu(e->opened, i) == cpu)
			return i;
	die("%s has no ring for CPU %d", e->name, cpu);
}

static inline long records_of(struct event *e, size_t ring)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	if (perfpersist_ring_stat(e->opened, ring, &stat) < 0)
		die("%s", perfpersist_error(NULL));
	return (long)stat.records;
}

/* The payload of a record, aligned. */
static inline struct sys_enter payload_of(const struct perfpersist_sample *s)
{
	struct sys_enter p;

	if (s->raw_size < sizeof(p))
		die("a payload of %zu bytes, shorter than the tracepoint's", s->raw_size);
	memcpy(&p, s->raw, sizeof(p));
	return p;
}

static inline bool is_call(const struct sys_enter *p, long run)
{
	return p->id == SYS_close && (long)p->args[1] == MARK && (long)p->args[5] == run;
}

/* The number of the call in the run; dies if any field is wrong. */
static inline long check_call(const struct perfpersist_sample *s, const struct sys_enter *p,
			      pid_t pid)
{
	long i = (long)p->args[2];

	if (p->args[0] != (uint64_t)~i || p->args[4] != i * MIX)
		die("call %ld has other arguments than it was made with", i);
	if (s->cpu != p->args[3])
		die("call %ld was made on CPU %d and is in the ring of CPU %u", i, (int)p->args[3],
		    s->cpu);
	if ((pid_t)s->pid != pid || (pid_t)s->tid != pid || p->pid != pid)
		die("call %ld is said to be of process %u, thread %u, not of %d", i, s->pid, s->tid,
		    pid);
	return i;
}

/* Returns false if this kernel has no such recorder. */
static inline bool event_create(struct event *e, uint32_t recorder, uint64_t size)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = "raw_syscalls:sys_enter",
		.buffer = size,
		.flags = recorder == PERFPERSIST_RECORDER_GENERIC ? PERFPERSIST_GENERIC : 0,
	};
	struct perfpersist_info info = { .sz = sizeof(info) };

	snprintf(e->name, sizeof(e->name), "%s-%llu",
		 recorder == PERFPERSIST_RECORDER_GENERIC ? "generic" : "tp_btf",
		 (unsigned long long)size);
	if (perfpersist_create(e->p, e->ns, e->name, &opts, &info) < 0)
		die("%s", perfpersist_error(e->p));
	if (info.buffer != size)
		die("%s: made with another size", e->name);
	e->size = size;
	e->missed = 0;
	return info.recorder == recorder;
}

static inline void event_delete(struct event *e)
{
	if (perfpersist_delete(e->p, e->ns, e->name, NULL) < 0)
		die("%s", perfpersist_error(e->p));
}

static inline void event_snapshot(struct event *e)
{
	if (perfpersist_snapshot_new(e->opened, &e->snapshot) < 0 ||
	    perfpersist_snapshot_take(e->snapshot) < 0)
		die("%s", perfpersist_error(NULL));
}

/* Finds the usable CPUs, at most four, and connects. */
static inline void setup(int argc, char **argv, struct event *e, struct work *w, int cpus[CPUS_MAX],
			 cpu_set_t *ret_all)
{
	struct perfpersist_options opts = { .sz = sizeof(opts) };
	atomic_bool *flags;

	if (argc != 3)
		die("usage: %s INSTANCE NAMESPACE", argv[0]);
	opts.instance = argv[1];
	e->ns = argv[2];
	if (perfpersist_connect(&opts, &e->p) < 0)
		die("%s", perfpersist_error(NULL));
	flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (flags == MAP_FAILED || sched_getaffinity(0, sizeof(*ret_all), ret_all) < 0)
		die("starting: %m");
	w->done = &flags[0];
	w->released = &flags[64];
	w->cpus = cpus;
	for (int cpu = 0; cpu < CPU_SETSIZE && w->n_cpus < CPUS_MAX; cpu++)
		if (CPU_ISSET(cpu, ret_all))
			cpus[w->n_cpus++] = cpu;
	w->alone = w->n_cpus > 1;
}
