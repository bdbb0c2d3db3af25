// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes snapshots of a raw_syscalls:sys_enter event while a writer on each CPU makes system
 * calls as fast as it can, and proves of each snapshot that nothing in it is torn, twice,
 * missing or out of order.
 *
 *   snapshot-check INSTANCE NAMESPACE/EVENT SNAPSHOTS
 *
 * A writer calls close(-1) with five more arguments, which the kernel ignores and the
 * tracepoint records: all of them follow from a sequence number, so that a record whose parts
 * are of different moments shows. The reader moves to another CPU for each snapshot, so that
 * each ring is copied while its writer runs.
 *
 * Then, with a counter of the kernel's on each CPU beside the event: recorded + missed = made,
 * snapshots being taken all the while.
 *
 * Exit 0: all of it held; 1: not, and it says what; 2: it could not run.
 */
#include <stdatomic.h>

#include "tests/integration/observe.h"

#define WORDS 6
#define FEW_FAULTS 10 /* told in full */

struct writer {
	_Atomic uint64_t made; /* sequence numbers used */
	_Atomic bool pause, paused;
	pid_t pid;
	int cpu;
	int counter;	 /* of the kernel, for the event on this CPU */
	uint64_t newest; /* in the last snapshot */
};

struct totals {
	uint64_t records, ours, gaps, faults;
	size_t hot; /* rings that were written while they were copied */
	uint64_t *written;
	double *fill;
	size_t n;
};

struct checked {
	struct perfpersist *p;
	const char *name;
	struct perfpersist_event *e;
	struct writer *writers;
	size_t n;
	int id_at, args_at;
	uint64_t buffer;
};

static struct totals totals;

static _printf_(1, 2) void fault(const char *format, ...)
{
	va_list args;

	if (totals.faults++ >= FEW_FAULTS)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

/* What a sequence number makes of the i-th argument; no two of them change in the same way. */
static uint64_t word(uint64_t seq, int i)
{
	return (seq + (uint64_t)i) * (0x9e3779b97f4a7c15ULL + 2 * (uint64_t)i);
}

static void write_forever(struct writer *w)
{
	uint64_t seq = 0;

	pin_to(w->cpu);
	for (;;) {
		if (atomic_load_explicit(&w->pause, memory_order_relaxed)) {
			w->paused = true;
			while (w->pause)
				sched_yield();
			w->paused = false;
		}
		syscall(SYS_close, -1L, seq, word(seq, 2), word(seq, 3), word(seq, 4),
			word(seq, 5));
		seq++;
		atomic_store_explicit(&w->made, seq, memory_order_relaxed);
	}
}

static void start_writers(struct checked *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct writer *w = &c->writers[i];
		pid_t pid;

		w->cpu = perfpersist_ring_cpu(c->e, i);
		pid = fork_helper();
		if (pid == 0)
			write_forever(w);
		w->pid = pid;
	}
}

static void stop_writers(struct checked *c)
{
	for (size_t i = 0; i < c->n; i++)
		end_helper(c->writers[i].pid);
}

static void pause_writers(struct checked *c, bool pause)
{
	for (size_t i = 0; i < c->n; i++)
		c->writers[i].pause = pause;
	for (size_t i = 0; i < c->n; i++)
		while (c->writers[i].paused != pause)
			sched_yield();
}

/* ── one snapshot ───────────────────────────────────────────────────────────────────────── */

/* What a writer calls while it is paused. */
static bool is_pause(const struct checked *c, const struct perfpersist_sample *sample)
{
	return sample->raw_size >= (size_t)c->id_at + sizeof(uint64_t) &&
	       load_u64((const uint8_t *)sample->raw + c->id_at) == SYS_sched_yield;
}

/* The sequence number of a writer's record; false: the record is torn. */
static bool whole(const struct checked *c, const struct perfpersist_sample *sample, uint64_t *ret)
{
	const uint8_t *raw = sample->raw;
	uint64_t seq;

	if (sample->raw_size < (size_t)c->args_at + WORDS * sizeof(uint64_t))
		return false;
	seq = load_u64(raw + c->args_at + sizeof(uint64_t));
	if (load_u64(raw + c->id_at) != SYS_close || load_u64(raw + c->args_at) != UINT64_MAX)
		return false;
	for (int i = 2; i < WORDS; i++)
		if (load_u64(raw + c->args_at + (size_t)i * sizeof(uint64_t)) != word(seq, i))
			return false;
	*ret = seq;
	return true;
}

/* Newest first: each of the writer's records has the number before the last one's. */
static void check_ring(struct checked *c, struct perfpersist_snapshot *s, size_t ring,
		       uint64_t written)
{
	struct writer *w = &c->writers[ring];
	struct perfpersist_cursor *cursor;
	struct perfpersist_sample sample;
	uint64_t time = UINT64_MAX, last = 0, newest = 0, seq, bytes = 0, ours = 0;
	int r;

	if (perfpersist_cursor_new(s, ring, &cursor) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(cursor, &sample)) > 0) {
		totals.records++;
		bytes += sample.record_size;
		if (sample.time > time)
			fault("CPU %d: a record of %" PRIu64 " lies behind one of %" PRIu64, w->cpu,
			      sample.time, time);
		time = sample.time;
		if (sample.pid != (uint32_t)w->pid || is_pause(c, &sample))
			continue;
		if (!whole(c, &sample, &seq)) {
			fault("CPU %d: a torn record", w->cpu);
			continue;
		}
		if (!ours++)
			newest = seq;
		else if (seq >= last)
			fault("CPU %d: %" PRIu64 " lies behind %" PRIu64, w->cpu, seq, last);
		else
			totals.gaps += last - seq - 1;
		last = seq;
	}
	perfpersist_cursor_free(cursor);
	if (r < 0)
		fault("CPU %d: the ring is damaged (%s)", w->cpu, strerror(-r));
	if (ours && newest < w->newest)
		fault("CPU %d: the newest is %" PRIu64 ", and it was %" PRIu64 " before", w->cpu,
		      newest, w->newest);
	if (ours)
		w->newest = newest;
	totals.ours += ours;
	if (written)
		totals.written[totals.hot++] = written;
	totals.fill[totals.n++] = (double)bytes / (double)c->buffer;
}

static void take(struct checked *c, struct perfpersist_snapshot *s, uint64_t number)
{
	uint64_t written[c->n];

	pin_to(perfpersist_ring_cpu(c->e, number % c->n));
	for (size_t i = 0; i < c->n; i++)
		written[i] = ring_stat(c->e, i).records;
	if (perfpersist_snapshot_take(s) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t i = 0; i < c->n; i++)
		written[i] = ring_stat(c->e, i).records - written[i];
	for (size_t i = 0; i < c->n; i++)
		check_ring(c, s, i, written[i]);
}

static void take_all(struct checked *c, uint64_t n)
{
	struct perfpersist_snapshot *s = snapshot_of(c->e);

	for (uint64_t i = 0; i < n; i++)
		take(c, s, i);
	perfpersist_snapshot_free(s);
}

/* ── recorded + missed = made ───────────────────────────────────────────────────────────── */

/* One moment: what is recorded and missed lies between what was counted before and after. */
struct edge {
	uint64_t before, recorded, after;
};

static uint64_t read_all(const struct checked *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += read_counter(c->writers[i].counter);
	return sum;
}

static struct edge take_edge(struct checked *c)
{
	struct edge e, best = { .after = UINT64_MAX };

	/* Others' calls blur it, ours do; the sharpest of many is taken. */
	for (int i = 0; i < 200; i++) {
		e.before = read_all(c);
		e.recorded = 0;
		for (size_t j = 0; j < c->n; j++)
			e.recorded += ring_stat(c->e, j).records;
		e.after = read_all(c);
		if (e.after - e.before < best.after - best.before)
			best = e;
	}
	best.recorded += missed_of(c->p, c->name);
	return best;
}

static void account(struct checked *c, uint64_t n)
{
	size_t attr_size;
	const struct perf_event_attr *attr = perfpersist_event_attr(c->e, &attr_size);
	struct edge begin, end;
	uint64_t made = 0, least, most, recorded;

	pause_writers(c, true);
	for (size_t i = 0; i < c->n; i++) {
		c->writers[i].counter =
			open_counter(PERF_TYPE_TRACEPOINT, attr->config, -1, c->writers[i].cpu);
		made -= c->writers[i].made;
	}
	begin = take_edge(c);
	pause_writers(c, false);
	take_all(c, n);
	pause_writers(c, true);
	end = take_edge(c);

	for (size_t i = 0; i < c->n; i++) {
		made += c->writers[i].made;
		close(c->writers[i].counter);
	}
	/* On each CPU one event may be counted and not yet recorded, or the other way round. */
	least = end.before - begin.after - 2 * c->n;
	most = end.after - begin.before + 2 * c->n;
	recorded = end.recorded - begin.recorded;
	printf("  %" PRIu64 " more while the kernel counted beside us: between %" PRIu64
	       " and %" PRIu64 " made, %" PRIu64 " by the writers; recorded + missed: %" PRIu64
	       "\n",
	       n, least, most, made, recorded);
	if (recorded < least || recorded > most || made > most)
		fault("recorded + missed is not what was made");
}

/* ── what came of it ────────────────────────────────────────────────────────────────────── */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const struct checked *c, uint64_t n)
{
	size_t rings = totals.n;

	qsort(totals.fill, rings, sizeof(double), by_value);
	qsort(totals.written, totals.hot, sizeof(uint64_t), by_number);
	printf("%s: %" PRIu64 " snapshots of %zu x %" PRIu64 "K: %" PRIu64 " records, %" PRIu64
	       " of the writers', %" PRIu64 " faults, %" PRIu64 " missing\n",
	       c->name, n, c->n, c->buffer / 1024, totals.records, totals.ours, totals.faults,
	       totals.gaps);
	printf("  filled: least %.1f %%, 1 %%: %.1f %%, median %.1f %%; %zu of %zu copies raced "
	       "with their writer: median %" PRIu64 " records written meanwhile, most %" PRIu64
	       "\n",
	       100 * totals.fill[0], 100 * totals.fill[rings / 100], 100 * totals.fill[rings / 2],
	       totals.hot, rings, totals.written[totals.hot / 2],
	       totals.written[totals.hot ? totals.hot - 1 : 0]);
	fflush(stdout);
	if (totals.fill[rings / 2] < 0.9 || totals.fill[rings / 100] < 0.5)
		fault("the snapshots lack too much of what the rings held");
	if (totals.hot < rings / 50)
		fault("only %zu of %zu copies were made while their ring was written", totals.hot,
		      rings);
}

int main(int argc, char **argv)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct checked c = {};
	uint64_t n, missed;

	if (argc != 4)
		die("usage: snapshot-check INSTANCE NAMESPACE/EVENT SNAPSHOTS");
	c.p = connect_to(argv[1]);
	c.name = argv[2];
	n = parse_count(argv[3]);
	c.e = open_event(c.p, c.name);
	c.n = perfpersist_event_rings(c.e);
	c.id_at = field_offset(c.e, "long id");
	c.args_at = field_offset(c.e, "unsigned long args[6]");
	if (c.id_at < 0 || c.args_at < 0 || perfpersist_event_info(c.e, &info) < 0)
		die("%s is not an event on raw_syscalls:sys_enter", c.name);
	c.buffer = info.buffer;
	c.writers = shared_memory(c.n * sizeof(*c.writers));
	/* For account() as well. */
	totals.fill = calloc(2 * n * c.n, sizeof(*totals.fill));
	totals.written = calloc(2 * n * c.n, sizeof(*totals.written));
	if (!totals.fill || !totals.written)
		die("out of memory");

	missed = missed_of(c.p, c.name);
	start_writers(&c);
	for (size_t i = 0; i < c.n; i++) /* each ring has been filled */
		while (c.writers[i].made < 2 * c.buffer / 64)
			sched_yield();
	take_all(&c, n);
	missed = missed_of(c.p, c.name) - missed;
	report(&c, n);
	if (totals.gaps > missed * n)
		fault("%" PRIu64 " are missing in snapshots, and %" PRIu64 " are told as missed",
		      totals.gaps, missed);
	account(&c, n / 5);
	stop_writers(&c);

	free(totals.fill);
	free(totals.written);
	perfpersist_event_free(c.e);
	perfpersist_free(c.p);
	if (totals.faults)
		fprintf(stderr, "%s: %" PRIu64 " faults\n", c.name, totals.faults);
	return totals.faults ? 1 : 0;
}
