// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures what readers cost the recorders, in records. For every recorder a worker fires a known
 * number of events on one CPU, and on the same CPU a reader only reads, in one of these ways:
 *
 *   nobody    no reader; two processes only use CPU time instead
 *   copies    a reader of copies makes every possible call on them, and asks for more as
 *             fast as it can, in two processes
 *   library   a reader of live rings takes snapshots of them, as fast as it can
 *   lookup    a reader of live rings copies one by bpf(BPF_MAP_LOOKUP_ELEM), as fast as it can
 *
 *   reader-cost INSTANCE CPU COPIES LIVE short|full     two namespaces, of which nobody in
 *                                                       particular gets copies, and live rings;
 *                                                       short: of system calls alone, and fewer
 *
 * Recorded + missed must equal the number of events, always (or exceed it: a recorder misses before
 * its filter runs). Recorders that nothing can shut out must lose nothing. The others record
 * everything, with and without copies; but other activity on this machine may cost records, too:
 * other programs, or a host that stops the virtual CPU. So the test runs both in turn until each
 * has recorded everything once. If that never happens, it compares the losses: judge_losses().
 *
 * Exit 0: everything is correct; 1: something is not, and it prints what; 2: it could not run.
 */
#include "tests/integration/cost-readers.h"
#include "tests/integration/cost-victims.h"

#define ATTEMPTS 10
#define ADDED_AT_MOST 0.005 /* of the records, when other activity costs some, too */

/* ── counting ───────────────────────────────────────────────────────────────────────────── */

/* Counts at one time, except for those that cannot be read at the same time: see judge(). */
struct edge {
	uint64_t made, recorded, missed;
	bool unknown;
};

static uint64_t records_of(struct perfpersist_event *e)
{
	return ring_stat(e, 0).records;
}

static uint64_t missed_by(const char *name, bool *ret_unknown)
{
	struct perfpersist_info info = { .sz = sizeof(info) };

	if (perfpersist_show(test.p, test.copies, name, &info) < 0)
		die("%s", perfpersist_error(test.p));
	*ret_unknown = info.missed_unknown;
	return info.missed;
}

/* Reads all counts, and reads them again if an event fired meanwhile. */
static void read_beside(struct perfpersist_event *truth, struct perfpersist_event *e,
			struct edge *ret)
{
	uint64_t seen;

	do {
		seen = records_of(truth);
		ret->recorded = records_of(e);
		ret->made = seen + missed_by("truth", &ret->unknown);
		ret->missed = missed_by("victim", &ret->unknown);
	} while (seen != records_of(truth) || ret->recorded != records_of(e));
}

/* The sample tells what was missed before it. So this reads right after a sample, with the clock as
 * it was nearly at that time. */
static void read_behind_sample(struct perfpersist_event *e, struct edge *ret)
{
	struct perfpersist_ring_stat before, stat;
	uint64_t begin;

	do {
		before = ring_stat(e, 0);
		while (records_of(e) == before.records)
			;
		begin = read_counter(test.clock);
		stat = ring_stat(e, 0);
		ret->made = read_counter(test.clock);
	} while (ret->made - begin >= CLOCK_NS / 4);
	ret->recorded = stat.records;
	ret->missed = stat.missed;
}

static struct edge read_edge(const struct victim *v, struct perfpersist_event *e,
			     struct perfpersist_event *truth)
{
	struct edge edge = { .recorded = 0 };

	if (v->truth == BY_TP_BTF) {
		read_beside(truth, e, &edge);
	} else if (v->truth == BY_CLOCK) {
		read_behind_sample(e, &edge);
	} else {
		edge.recorded = records_of(e);
		edge.missed = missed_by("victim", &edge.unknown);
	}
	return edge;
}

/* ── a run ──────────────────────────────────────────────────────────────────────────────── */

struct outcome {
	uint64_t made, recorded, missed;
	bool unknown, clean;
};

/* The missed count is not filtered: it may include other processes' events. */
static void judge(const struct victim *v, enum reader reader, struct outcome *o)
{
	uint64_t blur = v->truth == BY_CLOCK ? 2 : 0, known = o->recorded + o->missed;
	/* A sample that is late by more than half a period looks like a missed one before it. */
	uint64_t late = v->truth == BY_CLOCK ? o->missed : 0;
	bool too_many = o->recorded > o->made + blur;
	bool too_few = known + blur < o->made;

	if (!v->filter)
		too_many = too_many || known > o->made + blur + late;
	o->clean = o->missed == 0 && !too_few && !too_many;
	if (o->unknown)
		return;
	if (too_few || too_many)
		fault("%s, %s: %" PRIu64 " recorded + %" PRIu64 " missed are not the %" PRIu64
		      " that were made",
		      v->name, reader_names[reader], o->recorded, o->missed, o->made);
}

static void go(const struct victim *v, struct perfpersist_event *e, struct perfpersist_event *truth)
{
	struct perfpersist_event *counted = truth ?: e;
	uint64_t before = records_of(counted);

	if (v->truth == BY_WORKER) {
		test.shared->state = GO;
		await_state(DONE);
		return;
	}
	if (v->truth == BY_TP_BTF && ioctl(test.ticks, PERF_EVENT_IOC_ENABLE, 0) < 0)
		die("cannot have the CPU interrupted: %m");
	if (v->truth == BY_CLOCK) {
		uint64_t begin = read_counter(test.clock);

		while (read_counter(test.clock) - begin < v->n * CLOCK_NS)
			sched_yield();
	} else {
		while (records_of(counted) - before < v->n)
			sched_yield();
		ioctl(test.ticks, PERF_EVENT_IOC_DISABLE, 0);
	}
}

static struct outcome run(const struct victim *v, enum reader reader)
{
	struct perfpersist_event *truth = NULL, *e;
	struct edge begin, end;
	struct outcome o;
	pid_t readers[2], worker;
	size_t n;

	e = create(test.copies, "victim", v->event, v->filter, v->period, v->flags, v->recorder,
		   64 << 10);
	if (v->truth == BY_TP_BTF)
		truth = create(test.copies, "truth", v->event, v->filter, 0, 0,
			       PERFPERSIST_RECORDER_TP_BTF, 4 << 10);
	worker = start_worker(v);
	await_state(READY);
	n = start_readers(reader, readers);
	begin = read_edge(v, e, truth);
	go(v, e, truth);
	end_readers(readers, n);
	end = read_edge(v, e, truth);
	end_helper(worker);

	o = (struct outcome){
		.made = end.made - begin.made,
		.recorded = end.recorded - begin.recorded,
		.missed = end.missed - begin.missed,
		.unknown = end.unknown,
	};
	if (v->truth == BY_WORKER)
		o.made = v->n;
	else if (v->truth == BY_CLOCK)
		o.made = (o.made + CLOCK_NS / 2) / CLOCK_NS;
	judge(v, reader, &o);
	if (truth)
		delete_event(test.copies, "truth", truth);
	delete_event(test.copies, "victim", e);
	return o;
}

static void print_outcome(const struct outcome *o)
{
	char text[64];

	if (o->unknown)
		snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu64, o->recorded, o->made);
	else
		snprintf(text, sizeof(text), "%" PRIu64 " missed, %.1f %%", o->missed,
			 100 * (double)o->missed / (double)o->made);
	printf("  %20s", text);
}

/* The share of lost records. */
static double loss(const struct outcome *o)
{
	uint64_t lost = o->missed;

	if (o->unknown)
		lost = o->recorded < o->made ? o->made - o->recorded : 0;
	return (double)lost / (double)o->made;
}

/* Alternates between runs without a reader and with one, until each has recorded everything. */
struct fair_queue {
	int n;
	bool clean;
	double without[ATTEMPTS], with[ATTEMPTS]; /* losses of each run */
};

static int compare_losses(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void take_turns(const struct victim *v, struct fair_queue *t, struct outcome o[READERS])
{
	bool clean[] = { [NOBODY] = false, [COPIES] = false };

	*t = (struct fair_queue){};
	while (!t->clean && t->n < ATTEMPTS) {
		o[NOBODY] = run(v, NOBODY);
		o[COPIES] = run(v, COPIES);
		clean[NOBODY] |= o[NOBODY].clean;
		clean[COPIES] |= o[COPIES].clean;
		t->clean = clean[NOBODY] && clean[COPIES];
		t->without[t->n] = loss(&o[NOBODY]);
		t->with[t->n++] = loss(&o[COPIES]);
	}
	qsort(t->without, (size_t)t->n, sizeof(double), compare_losses);
	qsort(t->with, (size_t)t->n, sizeof(double), compare_losses);
}

/*
 * If every attempt lost something, other activity costs records, too, in changing amounts. Copies
 * add their losses to those. So the smallest loss with copies must not exceed the usual loss
 * without them, except for a small part of what lookups of live rings add, or, for a recorder that
 * lookups do not affect, a tiny amount.
 */
static void judge_losses(const struct victim *v, const struct fair_queue *t,
			 const struct outcome *lookup)
{
	double usual = t->without[t->n / 2], with = t->with[0];
	double bar = (loss(lookup) - t->without[0]) / 8;

	if (bar < ADDED_AT_MOST)
		bar = ADDED_AT_MOST;
	printf("    somebody else costs records, too: of %d attempts each, %.2f to %.2f %%, usually "
	       "%.2f %% without a reader, at least %.2f %% beside who gets copies; bar %.2f %% more\n",
	       t->n, 100 * t->without[0], 100 * t->without[t->n - 1], 100 * usual, 100 * with,
	       100 * bar);
	fflush(stdout);
	if (with > usual + bar)
		fault("%s: who gets copies costs records", v->name);
}

static void run_all(const struct victim *v)
{
	struct outcome o[READERS];
	struct fair_queue turns;

	take_turns(v, &turns, o);
	o[LIBRARY] = run(v, LIBRARY);
	o[LOOKUP] = run(v, LOOKUP);
	printf("  %-22s %7" PRIu64, v->name, o[COPIES].made);
	for (size_t i = 0; i < READERS; i++)
		print_outcome(&o[i]);
	putchar('\n');
	if (!turns.clean)
		judge_losses(v, &turns, &o[LOOKUP]);
	else if (turns.n > 1)
		printf("    somebody else costs records, too: nothing was lost in one of %d "
		       "attempts, and in one beside who gets copies\n",
		       turns.n);
	for (size_t i = 0; v->immune && i < READERS; i++)
		if (!o[i].clean)
			fault("%s: records were lost to %s", v->name, reader_names[i]);
}

/* ── beginning ──────────────────────────────────────────────────────────────────────────── */

static int open_ticks(uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, test.cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("perf_event_open of a clock: %m");
	return (int)fd;
}

/* A large, full ring. */
static struct perfpersist_event *create_bulk(const char *ns)
{
	struct perfpersist_event *e =
		create(ns, "bulk", "raw_syscalls:sys_enter", "COMM == \"pp-bulk\"", 0, 0,
		       PERFPERSIST_RECORDER_TP_BTF, BULK);

	prctl(PR_SET_NAME, "pp-bulk");
	pin_to(test.cpu);
	while (ring_stat(e, 0).bytes < BULK)
		make_calls(1000);
	prctl(PR_SET_NAME, "reader-cost");
	return e;
}

/* Moves to a CPU other than the measured one, if there is one. */
static void step_aside(const cpu_set_t *all)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, all) && cpu != test.cpu) {
			pin_to(cpu);
			return;
		}
}

int main(int argc, char **argv)
{
	struct perfpersist_event *bulk_copies, *bulk_live;
	char path[PATH_MAX];
	cpu_set_t all;
	ssize_t n;

	test.brief = argc == 6 && strcmp(argv[5], "short") == 0;
	if (!test.brief && !(argc == 6 && strcmp(argv[5], "full") == 0))
		die("usage: reader-cost INSTANCE CPU COPIES LIVE short|full");
	test.instance = argv[1];
	test.cpu = (int)parse_count(argv[2]);
	test.copies = argv[3];
	test.live = argv[4];
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n < 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		die("cannot find our user or directory: %m");
	path[n] = '\0';
	snprintf(test.uprobe, sizeof(test.uprobe), "uprobe:%s:reader_cost_probed", path);
	test.shared = shared_memory(sizeof(*test.shared));
	test.p = connect_to(test.instance);
	test.ticks = open_ticks(TICK_NS);
	test.clock = open_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, test.cpu);
	bulk_copies = create_bulk(test.copies);
	bulk_live = create_bulk(test.live);
	step_aside(&all);

	printf("  %-22s %7s", "recorder", "made");
	for (size_t i = 0; i < READERS; i++)
		printf("  %20s", reader_names[i]);
	putchar('\n');
	for (size_t i = 0; i < ARRAY_SIZE(victims); i++) {
		struct victim v = victims[i];

		if (test.brief && v.make != make_calls)
			continue;
		v.n /= test.brief ? 2 : 1;
		run_all(&v);
	}
	printf("  meanwhile: %" PRIu64 " calls on copies, %" PRIu64 " copies, %" PRIu64
	       " snapshots, %" PRIu64 " lookups of %u MiB\n",
	       test.shared->calls, test.shared->copies, test.shared->snapshots,
	       test.shared->lookups, BULK >> 20);

	delete_event(test.copies, "bulk", bulk_copies);
	delete_event(test.live, "bulk", bulk_live);
	perfpersist_free(test.p);
	return test.failed ? 1 : 0;
}
