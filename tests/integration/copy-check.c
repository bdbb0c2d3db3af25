// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares the copies of an event's rings, which a user without access to the rings gets, with the
 * rings themselves, which root gets.
 *
 *   copy-check INSTANCE NAMESPACE/EVENT rest     the event is paused: both are decoded to the
 *                                                same, whole
 *   copy-check INSTANCE NAMESPACE/EVENT load N   N times, while a writer on each CPU makes
 *                                                system calls as fast as it can
 *
 * Under load the test takes a snapshot of the rings after each copy: records in both must be equal,
 * byte for byte. A writer encodes the call's number in every argument, so that a torn record shows.
 * Each gap between the numbers must be in the daemon's missed count. The event records
 * raw_syscalls:sys_enter, alone or with others.
 *
 * Exit 0: everything is correct; 1: something is not, and it prints what; 2: it could not run.
 */
#include "tests/integration/reader.h"

#define COMM "pp-copies" /* of the writers: the event's filters select it */
#define WORDS 6
#define ARGS_OFFSET 16 /* of sys_enter's arguments in its payload, after the call's number */
#define FEW_FAULTS 10  /* printed in full */

struct writer {
	_Atomic uint64_t made;
	pid_t pid;
};

struct checked {
	const char *name;
	struct perfpersist *root, *reader;
	struct perfpersist_event *rings, *copies;
	struct perfpersist_snapshot *of_rings, *of_copies;
	size_t n;
	int enter; /* the source that is sys_enter */
	struct writer *writers;
	uint64_t *newest; /* the newest call of each writer in the previous copy */
};

static struct {
	uint64_t records, calls, missing, compared, sources[16], faults;
	size_t overlapping, of;
} totals;

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

static struct perfpersist_cursor *cursor_of(struct perfpersist_snapshot *s, size_t ring)
{
	struct perfpersist_cursor *c;

	if (perfpersist_cursor_new(s, ring, &c) < 0)
		die("%s", perfpersist_error(NULL));
	return c;
}

/* Returns false after the last record. */
static bool next(const struct checked *c, struct perfpersist_cursor *cursor,
		 struct perfpersist_sample *ret)
{
	int r = perfpersist_cursor_next(cursor, ret);

	if (r < 0)
		fault("%s: damaged (%s)", c->name, strerror(-r));
	return r > 0;
}

/* ── what it is ─────────────────────────────────────────────────────────────────────────── */

static bool same_text(const char *a, size_t a_size, const char *b, size_t b_size)
{
	return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

static void compare_source(struct checked *c, size_t i)
{
	struct perfpersist_source a = { .sz = sizeof(a) }, b = { .sz = sizeof(b) };

	if (perfpersist_event_source(c->rings, i, &a) < 0 ||
	    perfpersist_event_source(c->copies, i, &b) < 0)
		die("%s", perfpersist_error(NULL));
	if (a.id != b.id || a.sample_type != b.sample_type || a.recorder != b.recorder ||
	    !same_text(a.event, a.event_size, b.event, b.event_size) ||
	    !same_text(a.attr, a.attr_size, b.attr, b.attr_size) ||
	    !same_text(a.format, a.format_size, b.format, b.format_size))
		fault("source %zu of the copies is another", i);
	if (same_text(a.event, a.event_size, "raw_syscalls:sys_enter",
		      strlen("raw_syscalls:sys_enter")))
		c->enter = (int)i;
}

static void compare_events(struct checked *c)
{
	struct perfpersist_info a = { .sz = sizeof(a) }, b = { .sz = sizeof(b) };

	if (perfpersist_event_info(c->rings, &a) < 0 || perfpersist_event_info(c->copies, &b) < 0)
		die("%s", perfpersist_error(NULL));
	if (a.id != b.id || strcmp(a.ns, b.ns) || strcmp(a.name, b.name) ||
	    strcmp(a.event, b.event) || strcmp(a.filter, b.filter) || strcmp(a.cpus, b.cpus) ||
	    a.buffer != b.buffer || a.sample_type != b.sample_type || a.period != b.period ||
	    a.sources != b.sources || a.set != b.set || a.recorder != b.recorder ||
	    a.created != b.created)
		fault("the copies tell of another event than the rings");
	if (perfpersist_event_rings(c->rings) != perfpersist_event_rings(c->copies) ||
	    perfpersist_event_sources(c->rings) != perfpersist_event_sources(c->copies))
		die("there are not as many copies as rings, or not of as many sources");
	for (size_t i = 0; i < perfpersist_event_rings(c->rings); i++)
		if (perfpersist_ring_cpu(c->rings, i) != perfpersist_ring_cpu(c->copies, i))
			die("the copies are of other CPUs");
	for (size_t i = 0; i < perfpersist_event_sources(c->rings); i++)
		compare_source(c, i);
}

static bool same_sample(const struct perfpersist_sample *a, const struct perfpersist_sample *b)
{
	return a->cpu == b->cpu && a->source == b->source && a->pid == b->pid && a->tid == b->tid &&
	       a->time == b->time && a->ip == b->ip && a->addr == b->addr && a->id == b->id &&
	       a->period == b->period && a->n_callchain == b->n_callchain &&
	       a->record_size == b->record_size && a->raw_size == b->raw_size &&
	       memcmp(a->record, b->record, a->record_size) == 0 &&
	       (a->raw_size == 0 || memcmp(a->raw, b->raw, a->raw_size) == 0) &&
	       (a->n_callchain == 0 ||
		memcmp(a->callchain, b->callchain, a->n_callchain * sizeof(uint64_t)) == 0);
}

/* ── at rest ────────────────────────────────────────────────────────────────────────────── */

static void compare_at_rest(struct checked *c, size_t ring)
{
	struct perfpersist_cursor *a = cursor_of(c->of_rings, ring);
	struct perfpersist_cursor *b = cursor_of(c->of_copies, ring);
	struct perfpersist_ring_stat x = ring_stat(c->rings, ring);
	struct perfpersist_ring_stat y = ring_stat(c->copies, ring);
	struct perfpersist_sample s, t;
	bool more, also;

	if (x.records != y.records || x.bytes != y.bytes || x.missed != y.missed ||
	    x.limited != y.limited)
		fault("the copy of ring %zu tells other counts than the ring", ring);
	for (;;) {
		more = next(c, a, &s);
		also = next(c, b, &t);
		if (!more || !also)
			break;
		totals.compared++;
		totals.sources[MIN(s.source, ARRAY_SIZE(totals.sources) - 1)]++;
		if (!same_sample(&s, &t))
			fault("record %" PRIu64 " of ring %zu is another in the copy",
			      totals.compared, ring);
	}
	if (more != also)
		fault("%s of ring %zu has more records", more ? "the ring" : "the copy", ring);
	perfpersist_cursor_free(a);
	perfpersist_cursor_free(b);
}

static void rest(struct checked *c)
{
	for (size_t i = 0; i < c->n; i++)
		compare_at_rest(c, i);
	printf("%s, at rest: %" PRIu64 " records of %zu sources (", c->name, totals.compared,
	       perfpersist_event_sources(c->rings));
	for (size_t i = 0; i < perfpersist_event_sources(c->rings); i++)
		printf("%s%" PRIu64, i ? ", " : "", totals.sources[i]);
	if (!totals.compared)
		fault("there are no records");
	puts("), the same in rings and copies");
}

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

/* Derives the i-th argument from a call's number; no two arguments change in the same way. */
static uint64_t word(uint64_t seq, int i)
{
	return (seq + (uint64_t)i) * (0x9e3779b97f4a7c15ULL + 2 * (uint64_t)i);
}

static void start_writer(struct checked *c, size_t ring)
{
	struct writer *w = &c->writers[ring];
	pid_t pid = fork_helper();

	if (pid) {
		w->pid = pid;
		return;
	}
	prctl(PR_SET_NAME, COMM);
	pin_to(perfpersist_ring_cpu(c->rings, ring));
	for (uint64_t seq = 0;; seq++) {
		syscall(SYS_close, -1L, seq, word(seq, 2), word(seq, 3), word(seq, 4),
			word(seq, 5));
		w->made = seq + 1;
	}
}

/* The number of a writer's call; false if the record is torn. */
static bool whole(const struct perfpersist_sample *sample, uint64_t *ret)
{
	const uint8_t *args = (const uint8_t *)sample->raw + ARGS_OFFSET;
	uint64_t seq;

	if (sample->raw_size < ARGS_OFFSET + WORDS * sizeof(uint64_t))
		return false;
	seq = load_u64(args + sizeof(uint64_t));
	if (load_u64(args - sizeof(uint64_t)) != SYS_close || load_u64(args) != UINT64_MAX)
		return false;
	for (int i = 2; i < WORDS; i++)
		if (load_u64(args + (size_t)i * sizeof(uint64_t)) != word(seq, i))
			return false;
	*ret = seq;
	return true;
}

/* ── under load ─────────────────────────────────────────────────────────────────────────── */

/* Newest first: each call of the writer has the previous call's number minus one. */
static void check_copy(struct checked *c, size_t ring)
{
	struct perfpersist_cursor *cursor = cursor_of(c->of_copies, ring);
	uint64_t time = UINT64_MAX, last = 0, newest = 0, calls = 0, seq;
	struct perfpersist_sample s;

	while (next(c, cursor, &s)) {
		totals.records++;
		totals.sources[MIN(s.source, ARRAY_SIZE(totals.sources) - 1)]++;
		if (s.time > time)
			fault("ring %zu: a record of %" PRIu64 " lies behind one of %" PRIu64, ring,
			      s.time, time);
		time = s.time;
		if ((int)s.source != c->enter || s.pid != (uint32_t)c->writers[ring].pid)
			continue;
		if (!whole(&s, &seq)) {
			fault("ring %zu: a torn record", ring);
			continue;
		}
		if (!calls++)
			newest = seq;
		else if (seq >= last)
			fault("ring %zu: call %" PRIu64 " lies behind %" PRIu64, ring, seq, last);
		else
			totals.missing += last - seq - 1;
		last = seq;
	}
	perfpersist_cursor_free(cursor);
	if (calls && newest < c->newest[ring])
		fault("ring %zu: call %" PRIu64 " is the newest, and %" PRIu64 " was before", ring,
		      newest, c->newest[ring]);
	if (calls)
		c->newest[ring] = newest;
	totals.calls += calls;
}

/* Both begin at the newest record of the copy, and the comparison ends with the shorter one: the
 * snapshot is later, so its oldest records may be overwritten. */
static void compare_with_ring(struct checked *c, size_t ring)
{
	struct perfpersist_cursor *a = cursor_of(c->of_rings, ring);
	struct perfpersist_cursor *b = cursor_of(c->of_copies, ring);
	struct perfpersist_sample s = { 0 }, t;
	bool more, also = next(c, b, &t);

	do
		more = next(c, a, &s);
	while (more && also && !same_sample(&s, &t) && s.time >= t.time);
	totals.of++;
	totals.overlapping += more && also && s.time >= t.time;
	while (more && also && s.time >= t.time) {
		totals.compared++;
		if (!same_sample(&s, &t)) {
			fault("ring %zu: a record of %" PRIu64 " is another in the copy", ring,
			      t.time);
			break;
		}
		more = next(c, a, &s);
		also = next(c, b, &t);
		if (more && also && s.time < t.time)
			fault("ring %zu: a record of %" PRIu64 " is in the copy alone", ring,
			      t.time);
	}
	perfpersist_cursor_free(a);
	perfpersist_cursor_free(b);
}

static void copy_once(struct checked *c)
{
	int r = perfpersist_event_refresh(c->copies, c->reader);

	if (r < 0)
		die("%s", perfpersist_error(c->reader));
	if (perfpersist_snapshot_take(c->of_copies) < 0 ||
	    perfpersist_snapshot_take(c->of_rings) < 0)
		die("%s", perfpersist_error(NULL));
	for (size_t i = 0; i < c->n; i++) {
		check_copy(c, i);
		compare_with_ring(c, i);
	}
}

static void load(struct checked *c, uint64_t n)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t missed = missed_of(c->root, c->name), turns = 0;

	if (perfpersist_event_info(c->rings, &info) < 0)
		die("%s", perfpersist_error(NULL));
	c->writers = shared_memory(c->n * sizeof(*c->writers));
	c->newest = calloc(c->n, sizeof(*c->newest));
	if (!c->newest)
		die("out of memory");
	for (size_t i = 0; i < c->n; i++)
		start_writer(c, i);
	for (size_t i = 0; i < c->n; i++) /* waits until each ring is full */
		while (c->writers[i].made < 2 * info.buffer / 64)
			sched_yield();
	/* Until some still had what their ring had, too: else nothing is compared. */
	for (; turns < n || !totals.compared; turns++)
		copy_once(c);
	for (size_t i = 0; i < c->n; i++)
		end_helper(c->writers[i].pid);
	missed = missed_of(c->root, c->name) - missed;
	printf("%s, at full speed: %" PRIu64 " x %zu copies of %" PRIu64 "K: %" PRIu64
	       " records, %" PRIu64 " of the writers' calls, %" PRIu64 " missing, %" PRIu64
	       " told as missed; %" PRIu64
	       " compared with the rings, of which %zu of %zu still held some\n",
	       c->name, turns, c->n, info.buffer / 1024, totals.records, totals.calls,
	       totals.missing, missed, totals.compared, totals.overlapping, totals.of);
	if (totals.missing > missed * turns)
		fault("more is missing in the copies than was missed");
	for (size_t i = 0; i < perfpersist_event_sources(c->rings); i++)
		if (!totals.sources[i])
			fault("there is no record of source %zu", i);
	free(c->newest);
}

int main(int argc, char **argv)
{
	struct checked c = { .n = 0 };
	bool under_load = argc == 5 && strcmp(argv[3], "load") == 0;

	if (!under_load && !(argc == 4 && strcmp(argv[3], "rest") == 0))
		die("usage: copy-check INSTANCE NAMESPACE/EVENT rest|load N");
	c.name = argv[2];
	c.root = connect_to(argv[1]);
	c.reader = connect_as_reader(argv[1]);
	c.rings = open_event(c.root, c.name);
	c.copies = open_copies(c.reader, c.name);
	if (perfpersist_event_is_copy(c.rings))
		die("%s: root got copies", c.name);
	c.n = perfpersist_event_rings(c.rings);
	compare_events(&c);
	c.of_rings = snapshot_of(c.rings);
	c.of_copies = snapshot_of(c.copies);
	if (under_load)
		load(&c, parse_count(argv[4]));
	else
		rest(&c);

	perfpersist_snapshot_free(c.of_rings);
	perfpersist_snapshot_free(c.of_copies);
	perfpersist_event_free(c.rings);
	perfpersist_event_free(c.copies);
	perfpersist_free(c.root);
	perfpersist_free(c.reader);
	if (totals.faults)
		fprintf(stderr, "%s: %" PRIu64 " faults\n", c.name, totals.faults);
	return totals.faults ? 1 : 0;
}
