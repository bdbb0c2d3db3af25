// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks what passes a rate limit, while a worker on each CPU makes calls without a pause:
 *
 *   rate-check INSTANCE NS/NAME RATE RECORDS COMM
 *
 * The event must record RECORDS records of each of the workers' calls and nothing else (filter `id
 * == 3 && COMM == "…"`, so that several of these run side by side), at most RATE per second and
 * CPU. Then:
 *   - in each window of a second only the first RATE records pass;
 *   - without a limit (RATE changed to 0) all records pass, and afterwards (changed back) the limit
 *     works again;
 *   - in the end, per CPU: passed + limited + missed = made. (The kernel counts a miss before the
 *     filter runs, so the missed count may include other processes' calls.)
 *
 * Waits for records, never for a time: the limit itself shows that seconds pass.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/perfpersist.h"
#include "tests/integration/exact-worker.h"

#define CPUS_MAX 4
#define WINDOWS 3
#define SECOND 1000000000ULL
#define SLACK 20000000ULL /* windows are measured in jiffies: of 10 ms at most */

struct worker {
	int cpu;
	pid_t pid;
	size_t ring;
	atomic_ulong *made; /* calls; in shared memory */
};

struct check {
	struct perfpersist *p;
	const char *ns, *name, *comm; /* comm: of the workers */
	uint64_t rate, each;
	struct perfpersist_event *e;
	struct worker workers[CPUS_MAX];
	size_t n;
	atomic_bool *stop;
};

/* ── the workers ────────────────────────────────────────────────────────────────────────── */

static void start_worker(struct check *c, struct worker *w)
{
	w->pid = fork();
	if (w->pid < 0)
		die("fork: %m");
	if (w->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(w->cpu);
	prctl(PR_SET_NAME, c->comm);
	for (long i = 0; !atomic_load(c->stop); i++) {
		telling_call(i, 0, w->cpu);
		atomic_store(w->made, (unsigned long)i + 1);
	}
	_exit(0);
}

static void start_workers(struct check *c)
{
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t rings = perfpersist_event_rings(c->e);

	if (shared == MAP_FAILED)
		die("mmap: %m");
	c->stop = (atomic_bool *)shared;
	for (size_t i = 0; i < rings && c->n < CPUS_MAX; i++) {
		struct worker *w = &c->workers[c->n++];

		w->ring = i;
		w->cpu = perfpersist_ring_cpu(c->e, i);
		w->made = (atomic_ulong *)(shared + 64 * c->n);
		start_worker(c, w);
	}
}

static void end_workers(struct check *c)
{
	int status;

	atomic_store(c->stop, true);
	for (size_t i = 0; i < c->n; i++)
		if (waitpid(c->workers[i].pid, &status, 0) < 0 || status)
			die("the worker on CPU %d ended with %#x", c->workers[i].cpu, status);
}

/* ── waiting ────────────────────────────────────────────────────────────────────────────── */

static struct perfpersist_ring_stat stat_of(struct check *c, const struct worker *w)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	if (perfpersist_ring_stat(c->e, w->ring, &stat) < 0)
		die("%s", perfpersist_error(NULL));
	return stat;
}

/* Waits until so many more have passed, and have been limited, on every CPU. */
static void wait_for(struct check *c, uint64_t records, uint64_t limited)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct perfpersist_ring_stat then[CPUS_MAX];
	int64_t end = now() + 6 * WAIT_NS;

	for (size_t i = 0; i < c->n; i++)
		then[i] = stat_of(c, &c->workers[i]);
	for (size_t i = 0; i < c->n; i++) {
		struct perfpersist_ring_stat is = stat_of(c, &c->workers[i]);

		while (is.records < then[i].records + records ||
		       is.limited < then[i].limited + limited) {
			if (now() > end)
				die("CPU %d: %" PRIu64 " records and %" PRIu64
				    " kept out, and no more come",
				    c->workers[i].cpu, is.records, is.limited);
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
			is = stat_of(c, &c->workers[i]);
		}
	}
}

static void set_rate(struct check *c, uint64_t rate)
{
	const struct perfpersist_change_options o = {
		.sz = sizeof(o),
		.what = PERFPERSIST_CHANGE_MAX_RATE,
		.max_rate = rate,
	};
	struct perfpersist_info info = { .sz = sizeof(info) };

	if (perfpersist_change(c->p, c->ns, c->name, &o, &info) < 0)
		die("%s", perfpersist_error(c->p));
	if (info.max_rate != rate)
		die("the rate was changed to %" PRIu64 " and is %" PRIu64, rate, info.max_rate);
}

/* ── judging ────────────────────────────────────────────────────────────────────────────── */

/* The windows that the records show: each has RATE records, and then none for its rest. */
struct windows {
	uint64_t *times;    /* of the newest 2 * rate records */
	uint64_t n;	    /* records */
	uint64_t run, runs; /* records in a row; whole windows */
	int64_t last;	    /* number of the newest record's call */
};

/*
 * 2 * RATE + 1 records touch at least three windows, and the middle one is whole. If records were
 * limited between two of them, RATE had passed before; unless the worker did not run for so long
 * that a window ended meanwhile.
 */
static void see(const struct check *c, struct windows *w, const struct perfpersist_sample *s,
		int64_t number)
{
	uint64_t *oldest = &w->times[w->n % (2 * c->rate)];

	if (w->n >= 2 * c->rate && s->time - *oldest + SLACK < SECOND)
		die("CPU %u: %" PRIu64 " records in %" PRIu64 " ns, and the limit is %" PRIu64
		    " a second",
		    s->cpu, 2 * c->rate + 1, s->time - *oldest, c->rate);
	*oldest = s->time;
	w->n++;
	if (w->last >= 0 && number > w->last + 1) {
		if (w->run < c->rate)
			die("CPU %u: only %" PRIu64 " records were let through before call %" PRId64
			    " was kept out",
			    s->cpu, w->run, w->last + 1);
		w->runs += w->run == c->rate;
		w->run = 0;
	}
	w->run++;
	w->last = number;
}

static void check_windows(struct check *c, struct perfpersist_snapshot *snapshot,
			  const struct worker *worker)
{
	struct windows w = { .last = -1 };
	struct perfpersist_sample s;
	struct perfpersist_merge *m;
	int r;

	w.times = calloc(2 * c->rate, sizeof(*w.times));
	if (!w.times || perfpersist_merge_new(snapshot, PERFPERSIST_OLDEST_FIRST, 0, &m) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_merge_next(m, &s)) > 0) {
		int64_t number = w.last + 1;

		if (s.cpu != (uint32_t)worker->cpu)
			continue;
		if (c->each == 1 && s.raw_size >= 40)
			memcpy(&number, (const char *)s.raw + 32, sizeof(number));
		see(c, &w, &s, number);
	}
	if (r < 0)
		die("CPU %d: its ring cannot be read", worker->cpu);
	if (w.n < WINDOWS * c->rate)
		die("CPU %d: only %" PRIu64 " records are left; the buffer is too small",
		    worker->cpu, w.n);
	if (c->each == 1 && !w.runs)
		die("CPU %d: no window of exactly %" PRIu64 " records", worker->cpu, c->rate);
	printf("CPU %d: %" PRIu64 " records, at most %" PRIu64 " in a second", worker->cpu, w.n,
	       c->rate);
	if (c->each == 1)
		printf("; %" PRIu64 " windows with exactly so many, the first ones", w.runs);
	putchar('\n');
	perfpersist_merge_free(m);
	free(w.times);
}

static void check_limit(struct check *c)
{
	struct perfpersist_snapshot *s;

	/* Waits until these windows are full and the next record is limited. */
	wait_for(c, WINDOWS * c->rate + 1, 1);
	if (perfpersist_snapshot_new(c->e, &s) < 0 || perfpersist_snapshot_take(s) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t i = 0; i < c->n; i++)
		check_windows(c, s, &c->workers[i]);
	perfpersist_snapshot_free(s);
}

static void check_changes(struct check *c)
{
	uint64_t before[CPUS_MAX], after;

	set_rate(c, 0);
	wait_for(c, 1, 0);
	for (size_t i = 0; i < c->n; i++)
		before[i] = stat_of(c, &c->workers[i]).limited;
	wait_for(c, 10 * c->rate, 0);
	for (size_t i = 0; i < c->n; i++) {
		after = stat_of(c, &c->workers[i]).limited;
		if (after != before[i])
			die("CPU %d: %" PRIu64 " were kept out, and there was no limit",
			    c->workers[i].cpu, after - before[i]);
	}
	set_rate(c, c->rate);
	wait_for(c, 0, 1000);
}

static void check_sums(struct check *c)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t made = 0, seen = 0, missed = 0;

	if (perfpersist_show(c->p, c->ns, c->name, &info) < 0)
		die("%s", perfpersist_error(c->p));
	for (size_t i = 0; i < c->n; i++) {
		const struct worker *w = &c->workers[i];
		struct perfpersist_ring_stat s = stat_of(c, w);
		uint64_t mine = atomic_load(w->made) * c->each;

		made += mine;
		missed += s.missed;
		seen += s.records + s.limited;
		printf("CPU %d: %" PRIu64 " let through + %" PRIu64 " limited + %" PRIu64
		       " missed = %" PRIu64 " made\n",
		       w->cpu, s.records, s.limited, s.missed, mine);
		/* The kernel does not count per CPU when it shuts a program out. */
		if (s.records + s.limited + s.missed > mine ||
		    (info.missed == 0 && s.records + s.limited != mine))
			die("CPU %d: that is not so", w->cpu);
	}
	if (info.missed < missed || seen > made || seen + info.missed < made)
		die("%" PRIu64 " records or limited, %" PRIu64 " missed, and %" PRIu64 " made",
		    seen, info.missed, made);
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	static struct check c;
	char *slash;

	if (argc != 6 || !(slash = strchr(argv[2], '/')))
		die("usage: rate-check INSTANCE NS/NAME RATE RECORDS COMM");
	*slash = 0;
	c.ns = argv[2];
	c.name = slash + 1;
	o.instance = argv[1];
	c.rate = strtoull(argv[3], NULL, 10);
	c.each = strtoull(argv[4], NULL, 10);
	c.comm = argv[5];
	if (perfpersist_connect(&o, &c.p) < 0)
		die("%s", perfpersist_error(NULL));
	if (perfpersist_open(c.p, c.ns, c.name, &c.e) < 0)
		die("%s", perfpersist_error(c.p));
	start_workers(&c);
	check_limit(&c);
	check_changes(&c);
	end_workers(&c);
	check_sums(&c);
	perfpersist_event_free(c.e);
	perfpersist_free(c.p);
	return 0;
}
