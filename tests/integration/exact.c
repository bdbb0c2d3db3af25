// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Did an event on raw_syscalls:sys_enter record exactly what happened?
 *
 *   exact INSTANCE NAMESPACE
 *
 * A worker makes N known system calls on one CPU, with arguments that tell the run and the number
 * of the call. Then the test opens the event by name. Its rings must hold these very calls: all of
 * them, in order, if the ring has room for them; otherwise the newest ones, in order, as many as
 * fit. A missing call must be in the recorder's missed count. The test covers both recorders,
 * several sizes, each CPU, and N around the ring's capacity.
 *
 * The worker is a real-time process while it counts, so that the CPU's ring is its own, and stays
 * on its CPU until the ring has been copied. If other processes interfere all the same, the test
 * checks the invariants and repeats the run.
 *
 * Knows the public library only. Prints what it compared; exit 0, or 1 at the first difference.
 */
#include "tests/integration/exact-event.h"

/* The result of a walk over one run's calls. */
struct found {
	long present; /* calls of the run */
	long oldest;  /* index of the oldest present call */
	long gaps;    /* calls that are absent though older ones are present */
	bool whole;   /* the walk also found something older of the worker */
	long records; /* of any process */
	size_t record_size;
};

static long runs, attempts, calls, compared;

/* ── walking ────────────────────────────────────────────────────────────────────────────── */

/* Walks one CPU's ring from its newest record. */
static struct found walk(struct event *e, size_t ring, const struct work *w, pid_t pid)
{
	struct found f = { .oldest = w->n };
	struct perfpersist_sample s;
	struct perfpersist_cursor *c;
	uint64_t time = UINT64_MAX;
	int r;

	if (perfpersist_cursor_new(e->snapshot, ring, &c) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(c, &s)) > 0) {
		struct sys_enter p = payload_of(&s);
		long i;

		f.records++;
		f.record_size = s.record_size;
		if (s.time > time)
			die("a record is younger than the one written after it");
		time = s.time;
		if ((pid_t)s.pid != pid || f.whole)
			continue;
		if (!is_call(&p, w->run)) {
			f.whole = f.present > 0; /* a newer record is from after the release */
			continue;
		}
		i = check_call(&s, &p, pid);
		if (i >= f.oldest)
			die("call %ld is older than call %ld", i, f.oldest);
		f.gaps += f.oldest - 1 - i;
		f.oldest = i;
		f.present++;
	}
	if (r < 0)
		die("the ring's records end in something else");
	perfpersist_cursor_free(c);
	if (!f.records)
		die("nothing was recorded");
	if (f.whole)
		f.gaps += f.oldest;
	return f;
}

/* ── one run ────────────────────────────────────────────────────────────────────────────── */

/*
 * Invariants that hold even if other processes interfere. The ring had received `before` records
 * before the copy was made, and `after` after it.
 */
static void check_always(const struct event *e, const struct work *w, const struct found *f,
			 long before, long after, uint64_t missed)
{
	long capacity = (long)(e->size / f->record_size);
	long overwritten = after - before + (after != before); /* during the copy */

	if (f->records < MIN(before, capacity) - overwritten || f->records > MIN(after, capacity))
		die("%ld records are there: the ring holds %ld, %ld to %ld were written",
		    f->records, capacity, before, after);
	if ((uint64_t)f->gaps > missed)
		die("%ld of %ld calls are not there, and only %llu were missed", f->gaps, w->n,
		    (unsigned long long)missed);
	if (!f->whole && f->present + f->gaps < w->n && f->records < capacity - overwritten)
		die("calls are gone, and the ring is not full");
}

/* With no interference, no more calls are absent than necessary, and those are the oldest. */
static bool is_exact(const struct event *e, const struct work *w, const struct found *f)
{
	long capacity = (long)(e->size / f->record_size);
	long expected = MIN(w->n, capacity);

	return f->gaps == 0 && f->present == expected && f->oldest == w->n - expected;
}

static bool attempt(struct event *e, struct work *w, struct found *ret)
{
	uint64_t missed;
	long before, after;
	size_t ring;
	pid_t pid;

	w->run = ++attempts;
	atomic_store(w->done, false);
	atomic_store(w->released, false);
	event_open(e);
	event_close(e);
	pid = start_work(w);
	missed = event_open(e);
	ring = ring_of(e, w->cpus[0]);
	before = records_of(e, ring);
	event_snapshot(e);
	after = records_of(e, ring);
	end_work(w, pid);
	*ret = walk(e, ring, w, pid);
	check_always(e, w, ret, before, after, missed);
	event_close(e);
	compared += ret->present;
	return is_exact(e, w, ret);
}

static struct found run(struct event *e, struct work *w, long n)
{
	struct found f;

	w->n = n;
	runs++;
	calls += n;
	for (int i = 0; i < ATTEMPTS; i++)
		if (attempt(e, w, &f))
			return f;
	die("%s: of %ld calls %ld were there, the oldest of them %ld, in the last of %d attempts",
	    e->name, n, f.present, f.oldest, ATTEMPTS);
}

/* ── all runs ───────────────────────────────────────────────────────────────────────────── */

static void everybody_else(const struct work *w, const cpu_set_t *all)
{
	cpu_set_t rest = *all;

	if (w->alone)
		CPU_CLR(w->cpus[0], &rest);
	if (sched_setaffinity(0, sizeof(rest), &rest) < 0)
		die("cannot leave CPU %d: %m", w->cpus[0]);
}

static void around_capacity(struct event *e, struct work *w)
{
	struct found f = run(e, w, 1);
	long capacity = (long)(e->size / f.record_size);
	const long n[] = {
		2, 3, 100, 1000, capacity - 1, capacity, capacity + 1, capacity + 2, 3 * capacity, 1
	};

	printf("  %-16s CPU %d, room for %5ld: N = 1", e->name, w->cpus[0], capacity);
	for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
		run(e, w, n[i]);
		printf(" %ld", n[i]);
	}
	printf("\n");
}

static void one_event(struct event *e, struct work *w, const int *cpus, size_t n_cpus,
		      const cpu_set_t *all)
{
	for (size_t i = 0; i < n_cpus; i++) {
		w->cpus = &cpus[i];
		everybody_else(w, all);
		around_capacity(e, w);
	}
	if (sched_setaffinity(0, sizeof(*all), all) < 0)
		die("sched_setaffinity: %m");
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[] = { 4096, 16384, 65536, 524288, 4194304 };
	int cpus[CPUS_MAX];
	struct event e = {};
	struct work w = {};
	cpu_set_t all;
	size_t n_cpus;

	setup(argc, argv, &e, &w, cpus, &all);
	n_cpus = w.n_cpus;
	w.n_cpus = 1;
	for (uint32_t r = PERFPERSIST_RECORDER_GENERIC; r <= PERFPERSIST_RECORDER_TP_BTF; r++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			if (event_create(&e, r, sizes[i]))
				one_event(&e, &w, cpus, n_cpus, &all);
			else
				printf("  %-16s this kernel has no such recorder\n", e.name);
			event_delete(&e);
		}
	printf("%ld runs, %ld calls: each recorded exactly as made (%ld attempts in all, %ld "
	       "records compared)\n",
	       runs, calls, attempts, compared);
	perfpersist_free(e.p);
	return 0;
}
