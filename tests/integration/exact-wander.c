// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Are the records of several CPUs in the order in which things happened?
 *
 *   exact-wander INSTANCE NAMESPACE
 *
 * A worker makes known system calls and goes to another CPU every few of them. All rings of the
 * event, merged by time, must hold the calls in their order, each in the ring of the CPU on which
 * it was made. A missing call must be in the recorder's missed count, or at the old end of a ring
 * that other processes have filled meanwhile; then the run is repeated.
 *
 * Prints what it compared; exit 0, or 1 at the first difference.
 */
#include "tests/integration/exact-event.h"

#define BUFFER (4 << 20)
#define CALLS 2000

static long attempts, compared;
static size_t record_size; /* all records have one size */

/* One CPU's part of the wandering worker's run. */
struct lane {
	long next;	    /* the next expected call */
	bool begun;	    /* one of its calls has appeared */
	long late;	    /* calls before that one */
	long held;	    /* records of any process in the ring */
	long before, after; /* records that the ring had received when it was copied */
};

/* The call after i on the same CPU. */
static long successor(const struct work *w, long i)
{
	return (i + 1) % HOP ? i + 1 : i + 1 + HOP * ((long)w->n_cpus - 1);
}

/* How many of the CPU's calls lie between the next expected call and call i. */
static long skip_to(const struct work *w, struct lane *lane, long i)
{
	long n = 0;

	for (; lane->next < i; n++)
		lane->next = successor(w, lane->next);
	return n;
}

/* Merges all rings by time. Returns how many expected calls are absent. */
static long merge(struct event *e, const struct work *w, pid_t pid, struct lane *lanes)
{
	struct perfpersist_sample s;
	struct perfpersist_merge *m;
	long last = -1, gaps = 0;

	if (perfpersist_merge_new(e->snapshot, PERFPERSIST_OLDEST_FIRST, 0, &m) < 0)
		die("%s", perfpersist_error(NULL));
	while (perfpersist_merge_next(m, &s) > 0) {
		struct sys_enter p = payload_of(&s);
		struct lane *lane = NULL;
		long i, n;

		for (size_t k = 0; k < w->n_cpus; k++)
			if (w->cpus[k] == (int)s.cpu)
				lane = &lanes[k];
		if (!lane)
			continue;
		lane->held++;
		record_size = s.record_size;
		if ((pid_t)s.pid != pid || !is_call(&p, w->run))
			continue;
		i = check_call(&s, &p, pid);
		if (i <= last)
			die("call %ld comes behind call %ld", i, last);
		last = i;
		n = skip_to(w, lane, i);
		if (lane->begun)
			gaps += n;
		else
			lane->late = n;
		lane->begun = true;
		lane->next = successor(w, i);
		compared++;
	}
	if (perfpersist_merge_damaged(m))
		die("a ring is damaged");
	perfpersist_merge_free(m);
	return gaps;
}

/* Calls at a ring's old end may be absent if the ring is full; the recorder must have missed all
 * others. */
static bool check_lanes(const struct event *e, const struct work *w, struct lane *lanes, long gaps,
			uint64_t missed)
{
	long capacity = (long)(e->size / record_size);
	bool complete = gaps == 0;

	for (size_t k = 0; k < w->n_cpus; k++) {
		struct lane *lane = &lanes[k];
		long overwritten = lane->after - lane->before + (lane->after != lane->before);
		long rest = skip_to(w, lane, w->n);
		bool full = lane->held >= capacity - overwritten;

		complete &= lane->late == 0 && rest == 0;
		if (!full || lane->begun)
			gaps += rest;
		if (!full)
			gaps += lane->late;
	}
	if ((uint64_t)gaps > missed)
		die("%s: %ld calls are not there, and only %llu were missed", e->name, gaps,
		    (unsigned long long)missed);
	return complete;
}

static bool wander(struct event *e, struct work *w)
{
	struct lane lanes[CPUS_MAX] = {};
	uint64_t missed;
	long gaps;
	pid_t pid;

	w->run = ++attempts;
	atomic_store(w->done, false);
	atomic_store(w->released, true);
	event_open(e);
	event_close(e);
	pid = start_work(w);
	missed = event_open(e);
	for (size_t k = 0; k < w->n_cpus; k++) {
		lanes[k].next = (long)k * HOP;
		lanes[k].before = records_of(e, ring_of(e, w->cpus[k]));
	}
	event_snapshot(e);
	for (size_t k = 0; k < w->n_cpus; k++)
		lanes[k].after = records_of(e, ring_of(e, w->cpus[k]));
	gaps = merge(e, w, pid, lanes);
	end_work(w, pid);
	event_close(e);
	return check_lanes(e, w, lanes, gaps, missed);
}

static void wandering(struct event *e, struct work *w)
{
	bool complete = false;

	compared = 0;
	w->n = CALLS;
	for (int i = 0; i < ATTEMPTS && !complete; i++)
		complete = wander(e, w);
	printf("  %-16s %ld calls, on another one of %zu CPUs after each %d: %s, in order, "
	       "%ld records\n",
	       e->name, w->n, w->n_cpus, HOP, complete ? "all there" : "what others left of them",
	       compared);
	if (!compared)
		die("%s: not one of the calls was there", e->name);
}

int main(int argc, char **argv)
{
	int cpus[CPUS_MAX];
	struct event e = {};
	struct work w = {};
	cpu_set_t all;

	setup(argc, argv, &e, &w, cpus, &all);
	if (w.n_cpus < 2) {
		printf("there is one CPU only, so that nothing can wander\n");
		return 0;
	}
	for (uint32_t r = PERFPERSIST_RECORDER_GENERIC; r <= PERFPERSIST_RECORDER_TP_BTF; r++) {
		if (event_create(&e, r, BUFFER))
			wandering(&e, &w);
		event_delete(&e);
	}
	perfpersist_free(e.p);
	return 0;
}
