/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For the helpers of the coexistence, sampling and snapshot tests: opens events through the
 * library, independent counters of the kernel, and processes on CPUs of their own. A helper that
 * cannot do its work prints why and exits with 2.
 */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

#define NS_PER_S 1000000000ULL

static inline _printf_(1, 2) __attribute__((noreturn)) void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static inline uint64_t parse_count(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end)
		die("%s is not a number", text);
	return n;
}

static inline uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("cannot run on CPU %d: %m", cpu);
}

/* ── the library ────────────────────────────────────────────────────────────────────────── */

static inline struct perfpersist *connect_to(const char *instance)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct perfpersist *p;

	if (perfpersist_connect(&opts, &p) < 0)
		die("%s", perfpersist_error(NULL));
	return p;
}

/* Splits "NAMESPACE/EVENT"; ns is the caller's 64 bytes. */
static inline const char *split_name(const char *name, char *ns)
{
	const char *slash = strchr(name, '/');

	if (!slash || slash - name > 63)
		die("%s is not NAMESPACE/EVENT", name);
	memcpy(ns, name, (size_t)(slash - name));
	ns[slash - name] = '\0';
	return slash + 1;
}

static inline struct perfpersist_event *open_event(struct perfpersist *p, const char *name)
{
	struct perfpersist_event *e;
	char ns[64];
	const char *event = split_name(name, ns);
	int r;

	/* -EAGAIN: too many descriptors are in flight to other processes. */
	for (int i = 0; (r = perfpersist_open(p, ns, event, &e)) == -EAGAIN && i < 1000; i++)
		usleep(10000);
	if (r < 0)
		die("%s", perfpersist_error(p));
	return e;
}

/* The daemon's missed count; tracepoint recorders' misses are not in the rings. */
static inline uint64_t missed_of(struct perfpersist *p, const char *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	char ns[64];
	const char *event = split_name(name, ns);

	if (perfpersist_show(p, ns, event, &info) < 0)
		die("%s", perfpersist_error(p));
	if (info.missed_unknown)
		die("%s: this kernel does not report misses", name);
	return info.missed;
}

static inline struct perfpersist_snapshot *snapshot_of(struct perfpersist_event *e)
{
	struct perfpersist_snapshot *s;

	if (perfpersist_snapshot_new(e, &s) < 0 || perfpersist_snapshot_take(s) < 0)
		die("%s", perfpersist_error(NULL));
	return s;
}

static inline struct perfpersist_ring_stat ring_stat(struct perfpersist_event *e, size_t ring)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	if (perfpersist_ring_stat(e, ring, &stat) < 0)
		die("%s", perfpersist_error(NULL));
	return stat;
}

static inline size_t ring_of_cpu(struct perfpersist_event *e, int cpu)
{
	for (size_t i = 0; i < perfpersist_event_rings(e); i++)
		if (perfpersist_ring_cpu(e, i) == cpu)
			return i;
	die("the event has no ring for CPU %d", cpu);
}

/* The offset of a field in the tracepoint's payload, such as "unsigned long args[6]"; -1: it has
 * none. */
static inline int field_offset(struct perfpersist_event *e, const char *field)
{
	size_t size;
	const char *format = perfpersist_event_format(e, &size);
	char wanted[128];
	const char *at;
	int offset;

	if (!format)
		return -1;
	snprintf(wanted, sizeof(wanted), "field:%s;", field);
	at = memmem(format, size, wanted, strlen(wanted));
	if (!at || sscanf(at + strlen(wanted), " offset:%d;", &offset) != 1)
		return -1;
	return offset;
}

static inline uint64_t load_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* ── the kernel's own counters ──────────────────────────────────────────────────────────── */

/* Counts from now on; read it with read_counter(). */
static inline int open_counter(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .type = type, .size = sizeof(attr), .config = config };
	long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("perf_event_open of a counter (type %u, config %" PRIu64 "): %m", type, config);
	return (int)fd;
}

static inline uint64_t read_counter(int fd)
{
	uint64_t v;

	if (read(fd, &v, sizeof(v)) != sizeof(v))
		die("cannot read a counter: %m");
	return v;
}

/* ── processes ──────────────────────────────────────────────────────────────────────────── */

/* Forks a child that dies with this process. Returns 0 in the child. */
static inline pid_t fork_helper(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("fork: %m");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(2);
	}
	return pid;
}

static inline void end_helper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	return p;
}
