// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes numbered calls, and checks whether a ring holds all of them.
 *
 *   sequence filter          the filter of an event on raw_syscalls:sys_enter that passes the calls
 *                            and little else
 *   sequence work FILE       on each CPU a thread that gives itself names r0, r1, r2, … one
 *                            after the other, until SIGTERM; then writes a line "TID CALLS"
 *                            for each to FILE
 *   sequence check INSTANCE NAMESPACE/NAME STATE
 *                            for an event on raw_syscalls:sys_enter: in each ring the numbers of
 *                            the newest calls follow each other; STATE (a file) keeps where the
 *                            last check ended, and this one must join on if the ring still
 *                            reaches back so far
 *   sequence all INSTANCE NAMESPACE/NAME FILE
 *                            for an event on task:task_rename: all calls of FILE, from the first
 *
 * Each call is both a system call with the number as an argument and a renaming. A call that is not in its ring
 * must be counted as missed: where the recorder is no tp_btf program (Linux 7.x), a task that is preempted inside
 * bpf(2), as the engine can be, keeps it from running on its CPU meanwhile.
 */
#include <inttypes.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

#define CALLS_MAX 600000 /* per thread, so that a ring of 64 MiB holds them */
#define CPUS 64		 /* and most threads */

/* ── work ───────────────────────────────────────────────────────────────────────────────── */

struct worker {
	pthread_t thread;
	unsigned cpu;
	uint64_t mark;
	pid_t tid;
	uint64_t calls;
};

static atomic_bool stop;

/* The call's fourth argument marks it as ours. Other runs of this test have another SEQUENCE_MARK
 * in their environment. */
static uint64_t mark(void)
{
	const char *number = getenv("SEQUENCE_MARK");

	return 0x7365000000000000ULL + (number ? strtoull(number, NULL, 10) : 0);
}

static void call(uint64_t n, uint64_t mark)
{
	char name[16];

	snprintf(name, sizeof(name), "r%" PRIx64, n);
	syscall(SYS_prctl, PR_SET_NAME, name, n, mark, 0);
}

static void *work(void *userdata)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct worker *w = userdata;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	w->tid = (pid_t)syscall(SYS_gettid);
	while (!stop && w->calls < CALLS_MAX) {
		for (unsigned i = 0; i < 20; i++)
			call(w->calls++, w->mark);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int work_on_all_cpus(const char *path)
{
	static struct worker workers[CPUS];
	unsigned n = 0;
	cpu_set_t set;
	sigset_t term;
	FILE *f;
	int sig;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && n < CPUS; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			workers[n].cpu = cpu;
			workers[n].mark = mark();
			pthread_create(&workers[n].thread, NULL, work, &workers[n]);
			n++;
		}
	sigwait(&term, &sig);
	stop = true;
	f = fopen(path, "we");
	for (unsigned i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		if (f)
			fprintf(f, "%d %" PRIu64 "\n", workers[i].tid, workers[i].calls);
	}
	return f && fclose(f) == 0 ? 0 : 1;
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* The numbers of one thread in one ring, walked from the newest. */
struct run {
	pid_t tid;
	uint64_t newest, oldest, n;
};

struct runs {
	struct run run[CPUS];
	unsigned n;
	uint64_t lacking; /* between those that are there */
	uint64_t missed;  /* as the event counts them, at the end */
};

static uint64_t word(const struct perfpersist_sample *s, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const char *)s->raw + offset, sizeof(v));
	return v;
}

/* For sys_enter: common fields, id, six arguments. */
static bool number_of_call(const struct perfpersist_sample *s, size_t offset _unused_,
			   uint64_t *ret)
{
	if (s->raw_size < 64 || word(s, 8) != SYS_prctl || word(s, 40) != mark())
		return false;
	*ret = word(s, 32);
	return true;
}

/* For task_rename: the new name, at this offset. */
static bool number_of_name(const struct perfpersist_sample *s, size_t offset, uint64_t *ret)
{
	char name[17] = "", end;

	if (s->raw_size < offset + 16)
		return false;
	memcpy(name, (const char *)s->raw + offset, 16);
	return sscanf(name, "r%" SCNx64 "%c", ret, &end) == 1;
}

static struct run *run_of(struct runs *r, pid_t tid)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->run[i].tid == tid)
			return &r->run[i];
	if (r->n == CPUS)
		return NULL;
	r->run[r->n].tid = tid;
	return &r->run[r->n++];
}

typedef bool (*number_fn)(const struct perfpersist_sample *, size_t, uint64_t *);

/* 0, or 1 if numbers are not in order. */
static int walk_ring(struct perfpersist_cursor *c, number_fn number, size_t offset,
		     struct runs *runs)
{
	struct perfpersist_sample s;
	uint64_t n;
	int r;

	while ((r = perfpersist_cursor_next(c, &s)) > 0) {
		struct run *run;

		if (!number(&s, offset, &n))
			continue;
		run = run_of(runs, (pid_t)s.tid);
		if (!run)
			continue;
		if (run->n++ == 0) {
			run->newest = n;
		} else if (n >= run->oldest) {
			printf("CPU %u, thread %d: call %" PRIu64 " comes before %" PRIu64 "\n",
			       s.cpu, run->tid, n, run->oldest);
			return 1;
		} else {
			runs->lacking += run->oldest - n - 1;
		}
		run->oldest = n;
	}
	return r < 0;
}

static size_t offset_of_name(struct perfpersist_event *e)
{
	size_t size, offset = 0;
	const char *format = perfpersist_event_format(e, &size);
	_cleanup_free_ char *text = format ? strndup(format, size) : NULL;
	const char *field = text ? strstr(text, "newcomm[16];") : NULL;

	if (field && sscanf(field, "newcomm[16]; offset:%zu", &offset) != 1)
		return 0;
	return offset;
}

static int read_runs(const char *instance, char *event, bool names, struct runs *ret)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_snapshot *snapshot;
	struct perfpersist_event *e;
	struct perfpersist *p;
	char *slash = strchr(event, '/');
	int r = 0;

	if (!slash)
		return 2;
	*slash = 0;
	if (perfpersist_connect(&opts, &p) < 0) {
		printf("%s\n", perfpersist_error(NULL));
		return 1;
	}
	if (perfpersist_open(p, event, slash + 1, &e) < 0) {
		printf("%s\n", perfpersist_error(p));
		perfpersist_free(p);
		return 1;
	}
	if (perfpersist_snapshot_new(e, &snapshot) < 0 || perfpersist_snapshot_take(snapshot) < 0 ||
	    perfpersist_show(p, event, slash + 1, &info) < 0)
		return 1;
	perfpersist_free(p);
	ret->missed = info.missed;
	for (size_t i = 0; r == 0 && i < perfpersist_event_rings(e); i++) {
		struct perfpersist_cursor *c;

		if (perfpersist_cursor_new(snapshot, i, &c) < 0)
			return 1;
		r = walk_ring(c, names ? number_of_name : number_of_call,
			      names ? offset_of_name(e) : 0, ret);
		perfpersist_cursor_free(c);
	}
	perfpersist_snapshot_free(snapshot);
	perfpersist_event_free(e);
	return r;
}

/* ── judging ────────────────────────────────────────────────────────────────────────────── */

/* A thread that had made no call by then must be there from its first call. */
static bool overlaps(const struct run *now, const struct runs *before)
{
	for (unsigned i = 0; i < before->n; i++)
		if (before->run[i].tid == now->tid)
			return now->oldest <= before->run[i].newest + 1;
	return now->oldest == 0;
}

/* Prints "NUMBERS OVERLAPPING RUNS". */
static int check(const char *instance, char *event, const char *state)
{
	static struct runs before, now;
	uint64_t total = 0;
	unsigned joined = 0;
	FILE *f = fopen(state, "re");
	int r;

	while (f && before.n < CPUS &&
	       fscanf(f, "%d %" SCNu64, &before.run[before.n].tid, &before.run[before.n].newest) ==
		       2)
		before.n++;
	if (f)
		fclose(f);
	r = read_runs(instance, event, false, &now);
	if (!r && now.lacking > now.missed) {
		printf("%" PRIu64 " calls are lacking, and %" PRIu64 " were missed\n", now.lacking,
		       now.missed);
		r = 1;
	}
	if (r)
		return r;
	f = fopen(state, "we");
	for (unsigned i = 0; i < now.n; i++) {
		total += now.run[i].n;
		joined += overlaps(&now.run[i], &before);
		if (f)
			fprintf(f, "%d %" PRIu64 "\n", now.run[i].tid, now.run[i].newest);
	}
	printf("%" PRIu64 " %u %u\n", total, joined, now.n);
	return f && fclose(f) == 0 ? 0 : 1;
}

static int all(const char *instance, char *event, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	static struct runs runs;
	uint64_t calls, total = 0, lacking = 0;
	unsigned n = 0;
	pid_t tid;
	int r;

	r = f ? read_runs(instance, event, true, &runs) : 2;
	if (r)
		return r;
	for (; fscanf(f, "%d %" SCNu64, &tid, &calls) == 2; n++) {
		const struct run *run = run_of(&runs, tid);

		total += calls;
		lacking += run && run->n <= calls ? calls - run->n : 0;
		if (run && run->n <= calls && run->newest < calls && lacking <= runs.missed)
			continue;
		printf("thread %d made %" PRIu64 " calls, the ring has %" PRIu64 ", %" PRIu64
		       " to %" PRIu64 "\n",
		       tid, calls, run ? run->n : 0, run ? run->oldest : 0, run ? run->newest : 0);
		r = 1;
	}
	if (r == 0 && total > 0)
		printf("%" PRIu64 " calls of %u threads, each recorded once, in order; %" PRIu64
		       " were missed, as counted\n",
		       total, n, lacking);
	return total > 0 ? r : 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "filter") == 0)
		return printf("id == %d\n", SYS_prctl) < 0;
	if (argc == 3 && strcmp(argv[1], "work") == 0)
		return work_on_all_cpus(argv[2]);
	if (argc == 5 && strcmp(argv[1], "check") == 0)
		return check(argv[2], argv[3], argv[4]);
	if (argc == 5 && strcmp(argv[1], "all") == 0)
		return all(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: sequence filter | work FILE | "
			"(check|all) INSTANCE NAMESPACE/NAME FILE\n");
	return 2;
}
