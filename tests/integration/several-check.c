// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares an event with several sources with events that have one each:
 *
 *   several-check INSTANCE NS EVENTS CALLS BUFFER CPU,…
 *
 * One name records EVENTS and raw_syscalls:* of the load's tasks, in buffers of that size; the
 * other events have buffers of a fourth. Under a load of CALLS known calls on each CPU, with timers
 * and switches that interrupt:
 *   - a worker's calls are complete, enter and exit in turn, and the missed count covers every lost
 *     record;
 *   - each record belongs to the source that it names (by the id in the tracepoint's own payload);
 *   - between a worker's first and last call, each source's records equal those of the event that
 *     has only this source, in the same order, byte for byte (except samples: each event has its
 *     own timer);
 *   - in a ring times never decrease.
 *
 * It prints how often one writer interrupted another, derived from the addresses of samples.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfpersist.h"
#include "tests/integration/several-load.h"
#include "tests/integration/several-programs.h"
#include "tests/integration/tp-format.h"

#define SOURCES_MAX 64
#define COMM "pp-several" /* of the load */
#define OURS "COMM == \"" COMM "\""
#define AHEAD 64 /* records that may be missing in a row, if they are counted */

/* The records of one ring, oldest first, or those of one of its sources. */
struct records {
	struct perfpersist_sample *v;
	size_t n, cap;
};

struct name {
	char name[32];
	struct perfpersist_event *e;
	struct perfpersist_snapshot *s;
	struct records rings[LOAD_CPUS_MAX]; /* in the order of load.cpus */
	uint64_t missed;		     /* on all CPUs */
};

struct source {
	struct perfpersist_source info;
	char text[1024];
	struct tp_format format; /* id 0: a sampling event */
	bool is_call;		 /* compare only the worker's calls */
	struct name alone;
	uint64_t compared, missing, extra; /* equal records; records in one of the two only */
};

struct check {
	struct perfpersist *p;
	const char *ns, *instance, *cpus;
	uint64_t buffer;
	struct load load;
	struct name all;
	struct source sources[SOURCES_MAX];
	size_t n;
	int enter, exit, tick; /* indices of sources; -1: none */
	struct programs programs;
	uint64_t calls, ticks, lost, nested;
};

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

static bool is_call(const char *event)
{
	return !strncmp(event, "raw_syscalls:", 13);
}

static void make_name(struct check *c, struct name *n, const char *name, const char *event)
{
	/* Records only the load's tasks, so that a busy machine does not overwrite the records. */
	const struct perfpersist_selection both[] = {
		{ .event = event, .filter = OURS },
		{ .event = "raw_syscalls:*", .filter = OURS },
	};
	bool all = n == &c->all;
	struct perfpersist_create_options o = {
		.sz = sizeof(o),
		.selections = both,
		.n_selections = all ? 2 : 1,
		.cpus = c->cpus,
		.buffer = all ? c->buffer : c->buffer / 4,
		.flags = PERFPERSIST_NO_SHARE,
	};

	snprintf(n->name, sizeof(n->name), "%s", name);
	if (perfpersist_create(c->p, c->ns, name, &o, NULL) < 0 ||
	    perfpersist_open(c->p, c->ns, name, &n->e) < 0)
		die("%s", perfpersist_error(c->p));
}

static void append(struct records *r, const struct perfpersist_sample *s)
{
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 1024;
		r->v = reallocarray(r->v, r->cap, sizeof(*r->v));
		if (!r->v)
			die("out of memory");
	}
	r->v[r->n++] = *s;
}

static struct records *records_of_cpu(struct check *c, struct name *n, uint32_t cpu)
{
	for (size_t i = 0; i < c->load.n_cpus; i++)
		if (c->load.cpus[i] == (int)cpu)
			return &n->rings[i];
	die("%s has a record of CPU %u, which was not asked for", n->name, cpu);
}

/* The counts in the ring of that CPU. */
static struct perfpersist_ring_stat stat_of(struct perfpersist_event *e, int cpu)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };

	for (size_t i = 0; i < perfpersist_event_rings(e); i++)
		if (perfpersist_ring_cpu(e, i) == cpu && perfpersist_ring_stat(e, i, &stat) >= 0)
			return stat;
	die("there is no ring of CPU %d", cpu);
}

/* Reads all records, and checks that none is missing. */
static void read_name(struct check *c, struct name *n)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t written[LOAD_CPUS_MAX];
	struct perfpersist_sample s;
	struct perfpersist_merge *m;
	int r;

	/* Our load has ended; other processes continue. */
	for (size_t i = 0; i < c->load.n_cpus; i++)
		written[i] = stat_of(n->e, c->load.cpus[i]).records;
	if (perfpersist_snapshot_new(n->e, &n->s) < 0 || perfpersist_snapshot_take(n->s) < 0 ||
	    perfpersist_merge_new(n->s, PERFPERSIST_OLDEST_FIRST, 0, &m) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_merge_next(m, &s)) > 0)
		append(records_of_cpu(c, n, s.cpu), &s);
	if (r < 0 || perfpersist_merge_damaged(m))
		die("%s: its rings cannot be read", n->name);
	perfpersist_merge_free(m);
	for (size_t i = 0; i < c->load.n_cpus; i++)
		if (n->rings[i].n < written[i])
			die("%s, CPU %d: %zu records read of %" PRIu64
			    " written: the buffers are too small",
			    n->name, c->load.cpus[i], n->rings[i].n, written[i]);
	if (perfpersist_show(c->p, c->ns, n->name, &info) < 0)
		die("%s", perfpersist_error(c->p));
	n->missed = info.missed;
}

static void delete_name(struct check *c, struct name *n)
{
	perfpersist_snapshot_free(n->s);
	perfpersist_event_free(n->e);
	for (size_t i = 0; i < LOAD_CPUS_MAX; i++)
		free(n->rings[i].v);
	if (perfpersist_delete(c->p, c->ns, n->name, NULL) < 0)
		die("%s", perfpersist_error(c->p));
}

/* ── sources ────────────────────────────────────────────────────────────────────────────── */

static void learn_source(struct check *c, size_t i)
{
	struct source *s = &c->sources[i];

	s->info.sz = sizeof(s->info);
	if (perfpersist_event_source(c->all.e, i, &s->info) < 0)
		die("source %zu: %s", i, perfpersist_error(NULL));
	snprintf(s->text, sizeof(s->text), "%.*s", (int)s->info.event_size, s->info.event);
	if (s->info.format && !tp_format_parse(s->info.format, s->info.format_size, &s->format))
		die("%s: its format cannot be understood", s->text);
	s->is_call = is_call(s->text);
	if (!strcmp(s->text, "raw_syscalls:sys_enter"))
		c->enter = (int)i;
	else if (!strcmp(s->text, "raw_syscalls:sys_exit"))
		c->exit = (int)i;
	else if (s->info.recorder == PERFPERSIST_RECORDER_PROBE)
		c->tick = (int)i;
}

static bool has_alone(const struct source *s)
{
	return s->info.recorder != PERFPERSIST_RECORDER_OVERFLOW;
}

static void make_sources(struct check *c)
{
	char name[32];

	c->enter = c->exit = c->tick = -1;
	c->n = perfpersist_event_sources(c->all.e);
	if (c->n < 2 || c->n > SOURCES_MAX)
		die("%zu sources, and this test is for 2 to %d", c->n, SOURCES_MAX);
	for (size_t i = 0; i < c->n; i++) {
		learn_source(c, i);
		snprintf(name, sizeof(name), "alone%zu", i);
		if (has_alone(&c->sources[i]))
			make_name(c, &c->sources[i].alone, name, c->sources[i].text);
	}
	if (c->enter < 0 || c->exit < 0)
		die("raw_syscalls:* is not among the events");
}

/* ── one ring ───────────────────────────────────────────────────────────────────────────── */

static void check_record(const struct check *c, const struct perfpersist_sample *s, uint64_t before)
{
	const struct source *source;
	uint16_t type;

	if (s->source >= c->n)
		die("CPU %u: a record of source %u, and there are %zu", s->cpu, s->source, c->n);
	source = &c->sources[s->source];
	if (s->time < before)
		die("CPU %u: a record of %s at %" PRIu64 ", behind one at %" PRIu64, s->cpu,
		    source->text, s->time, before);
	if (s->id != source->info.id)
		die("CPU %u: a record of %s has another's id", s->cpu, source->text);
	if (!source->info.format || source->info.recorder == PERFPERSIST_RECORDER_PROBE)
		return;
	if (s->raw_size < sizeof(type))
		die("CPU %u: a record of %s of %zu bytes", s->cpu, source->text, s->raw_size);
	memcpy(&type, s->raw, sizeof(type));
	if (type != source->format.id)
		die("CPU %u: a record that says it is of %s (%u) is of tracepoint %u", s->cpu,
		    source->text, source->format.id, type);
}

static int64_t field_of(const struct source *s, const struct perfpersist_sample *sample,
			const char *name)
{
	int64_t value = 0;

	for (size_t i = 0; i < s->format.n; i++) {
		const struct tp_format_field *f = &s->format.fields[i];

		if (strcmp(f->name, name))
			continue;
		if (f->size > sizeof(value) || f->offset + f->size > sample->raw_size)
			die("%s: field %s is not in a record", s->text, name);
		memcpy(&value, (const char *)sample->raw + f->offset, f->size);
		return value;
	}
	die("%s has no field %s", s->text, name);
}

/* The worker's call that a record of sys_enter shows. */
static long call_of(const struct perfpersist_sample *s)
{
	int64_t args[6];

	if (s->raw_size < 16 + sizeof(args))
		die("a record of sys_enter of %zu bytes", s->raw_size);
	memcpy(args, (const char *)s->raw + 16, sizeof(args));
	if (args[1] != MARK || args[0] != ~args[2] || (uint64_t)args[4] != args[2] * MIX ||
	    args[3] != s->cpu)
		die("CPU %u: a call that is torn, or none of ours", s->cpu);
	return args[2];
}

static bool is_close(const struct check *c, const struct perfpersist_sample *s)
{
	return ((int)s->source == c->enter || (int)s->source == c->exit) &&
	       field_of(&c->sources[s->source], s, "id") == SYS_close;
}

/* The state of a worker in the ring. */
struct seen {
	long entered, ticked; /* numbers of the newest call and tick; -1: none */
	bool inside;	      /* in a call that has not returned */
	uint64_t enters, exits, ticks;
	uint64_t out_of_turn; /* records that cannot follow the one before */
};

/* Takes a record of the worker; false: it belongs to no counted call. */
static bool see(const struct check *c, struct seen *seen, const struct perfpersist_sample *s)
{
	const struct source *source = &c->sources[s->source];
	long number;

	if ((int)s->source == c->tick) {
		number = field_of(source, s, "number");
		if (number % TICK_EVERY || number <= seen->ticked)
			die("CPU %u: tick %ld after %ld", s->cpu, number, seen->ticked);
		seen->out_of_turn += seen->inside || seen->entered != number - 1;
		seen->ticked = number;
		seen->ticks++;
		return true;
	}
	if (!is_close(c, s))
		return false;
	if ((int)s->source == c->exit) {
		if (field_of(source, s, "ret") != -EBADF)
			die("CPU %u: a call that did not fail", s->cpu);
		seen->out_of_turn += !seen->inside;
		seen->inside = false;
		seen->exits++;
		return true;
	}
	number = call_of(s);
	if (number <= seen->entered)
		die("CPU %u: call %ld after %ld", s->cpu, number, seen->entered);
	seen->out_of_turn += seen->inside || number != seen->entered + 1;
	seen->entered = number;
	seen->inside = true;
	seen->enters++;
	return true;
}

/*
 * Checks the worker's calls in turn: tick (for some), enter, exit. Sets the indices of its first
 * and last record; returns how many records are absent.
 */
static uint64_t check_worker(struct check *c, size_t i, size_t *ret_first, size_t *ret_last)
{
	const struct records *r = &c->all.rings[i];
	struct seen seen = { .entered = -1, .ticked = -1 };
	uint64_t calls = c->load.calls, ticks, lost;

	*ret_first = SIZE_MAX;
	for (size_t k = 0; k < r->n; k++) {
		if (r->v[k].tid != (uint32_t)c->load.workers[i] || !see(c, &seen, &r->v[k]))
			continue;
		*ret_first = MIN(*ret_first, k);
		*ret_last = k;
	}
	if (*ret_first == SIZE_MAX)
		die("CPU %d: the worker has no record", c->load.cpus[i]);
	ticks = c->tick < 0 ? 0 : (calls + TICK_EVERY - 1) / TICK_EVERY;
	if (seen.enters > calls || seen.exits > calls || seen.ticks > ticks)
		die("CPU %d: the worker has more records than it made calls", c->load.cpus[i]);
	lost = 2 * calls + ticks - seen.enters - seen.exits - seen.ticks;
	if (!lost && seen.out_of_turn)
		die("CPU %d: %" PRIu64 " records of the worker are out of turn", c->load.cpus[i],
		    seen.out_of_turn);
	c->calls += seen.enters;
	c->ticks += seen.ticks;
	return lost;
}

/* ── beside the events of one source ────────────────────────────────────────────────────── */

static bool is_compared(const struct check *c, const struct source *s, size_t i,
			const struct perfpersist_sample *sample)
{
	/* Other tasks may move to another CPU between two programs of the same call. */
	return !s->is_call || sample->tid == (uint32_t)c->load.workers[i];
}

static bool same(const struct source *s, const struct perfpersist_sample *a,
		 const struct perfpersist_sample *b)
{
	return a->tid == b->tid &&
	       !tp_format_compare(&s->format, a->raw, a->raw_size, b->raw, b->raw_size);
}

/* Extracts the records of source s between the worker's first and last record, and all records of
 * the single-source event. */
static void sort_out(const struct check *c, size_t k, size_t i, size_t first, size_t last,
		     struct records *ret_several, struct records *ret_alone)
{
	const struct source *s = &c->sources[k];
	const struct records *several = &c->all.rings[i], *alone = &s->alone.rings[i];

	for (size_t at = first; at <= last; at++)
		if (several->v[at].source == k && is_compared(c, s, i, &several->v[at]))
			append(ret_several, &several->v[at]);
	for (size_t at = 0; at < alone->n; at++)
		if (is_compared(c, s, i, &alone->v[at]))
			append(ret_alone, &alone->v[at]);
}

/* Where to begin: the record in b that is nearest in time to a's first. */
static size_t nearest(const struct records *b, const struct perfpersist_sample *a)
{
	uint64_t best = UINT64_MAX;
	size_t found = 0;

	for (size_t i = 0; i < b->n; i++) {
		uint64_t apart =
			b->v[i].time > a->time ? b->v[i].time - a->time : a->time - b->v[i].time;

		if (apart < best) {
			best = apart;
			found = i;
		}
	}
	return found;
}

/* How many records of b come before the one that equals a; SIZE_MAX: none does. */
static size_t find_ahead(const struct source *s, const struct records *b, size_t from,
			 const struct perfpersist_sample *a)
{
	for (size_t n = 0; n < AHEAD && from + n < b->n; n++)
		if (same(s, a, &b->v[from + n]))
			return n;
	return SIZE_MAX;
}

/* How many records are equal, in order, and how many are in only one of the two. */
struct difference {
	uint64_t compared, missing, extra;
};

static struct difference difference_from(const struct source *s, const struct records *several,
					 const struct records *alone, size_t at)
{
	struct difference d = {};

	for (size_t n = 0; n < several->n; n++) {
		size_t skipped = find_ahead(s, alone, at, &several->v[n]);

		if (skipped == SIZE_MAX) {
			d.extra++;
			continue;
		}
		d.missing += skipped;
		d.compared++;
		at += skipped + 1;
	}
	return d;
}

/*
 * Both have the same records in the same order; records in only one of them are counted. The two
 * events' programs run one after the other, and an interrupt may come between them: the nearest
 * record in time can be the one before or after the counterpart, so both are tried, too.
 */
static void compare_source(struct check *c, size_t k, size_t i, size_t first, size_t last)
{
	struct source *s = &c->sources[k];
	struct records several = {}, alone = {};
	struct difference best = { .missing = UINT64_MAX };
	size_t at;

	sort_out(c, k, i, first, last, &several, &alone);
	at = several.n && alone.n ? nearest(&alone, &several.v[0]) : 0;
	for (size_t from = at ? at - 1 : 0; from <= at + 1; from++) {
		struct difference d = difference_from(s, &several, &alone, from);

		if (d.missing + d.extra < best.missing + best.extra)
			best = d;
	}
	s->compared += best.compared;
	s->missing += best.missing;
	s->extra += best.extra;
	free(several.v);
	free(alone.v);
}

/* ── all ────────────────────────────────────────────────────────────────────────────────── */

static void check_ring(struct check *c, size_t i)
{
	const struct records *r = &c->all.rings[i];
	uint64_t before = 0, missed = stat_of(c->all.e, c->load.cpus[i]).missed, lost;
	size_t first, last = 0;

	if (!r->n)
		die("CPU %d: nothing is recorded", c->load.cpus[i]);
	for (size_t k = 0; k < r->n; k++) {
		check_record(c, &r->v[k], before);
		before = r->v[k].time;
		if (c->sources[r->v[k].source].info.recorder == PERFPERSIST_RECORDER_OVERFLOW)
			c->nested += programs_hold(&c->programs, r->v[k].ip);
	}
	lost = check_worker(c, i, &first, &last);
	if (lost > missed)
		die("CPU %d: %" PRIu64 " of the worker's records are not there, and %" PRIu64
		    " are counted as missed",
		    c->load.cpus[i], lost, missed);
	c->lost += lost;
	for (size_t k = 0; k < c->n; k++)
		if (has_alone(&c->sources[k]))
			compare_source(c, k, i, first, last);
}

static void judge(struct check *c)
{
	size_t samples = 0, silent = 0;
	uint64_t compared = 0;

	for (size_t k = 0; k < c->n; k++) {
		const struct source *s = &c->sources[k];

		if (!has_alone(s)) {
			samples++;
			continue;
		}
		if (s->missing > c->all.missed || s->extra > s->alone.missed)
			die("%s: %" PRIu64 " records equal those of the event alone; %" PRIu64
			    " are there only (missed here: %" PRIu64 "), %" PRIu64
			    " here only (missed there: %" PRIu64 ")",
			    s->text, s->compared, s->missing, c->all.missed, s->extra,
			    s->alone.missed);
		silent += !s->compared;
		compared += s->compared;
		if (s->compared)
			printf("  %8" PRIu64 " %s\n", s->compared, s->text);
	}
	printf("%zu sources on CPUs %s: %" PRIu64 " calls, %" PRIu64 " ticks, %" PRIu64
	       " of their records lost, %" PRIu64 " missed in all; %" PRIu64
	       " records equal those of single events; %zu did not happen\n",
	       c->n, c->cpus, c->calls, c->ticks, c->lost, c->all.missed, compared, silent);
	if (!samples)
		return;
	printf("%" PRIu64 " samples interrupted a program of this event on its way into the ring\n",
	       c->nested);
	if (!c->nested && c->programs.n)
		die("no writer has interrupted another: this test says nothing");
}

static void take_cpus(struct check *c, const char *list)
{
	char *end;

	c->cpus = list;
	for (const char *at = list; *at; at = *end ? end + 1 : end) {
		if (c->load.n_cpus == LOAD_CPUS_MAX)
			die("at most %d CPUs", LOAD_CPUS_MAX);
		c->load.cpus[c->load.n_cpus++] = (int)strtol(at, &end, 10);
	}
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	static struct check c;
	char folder[256];

	if (argc != 7)
		die("usage: several-check INSTANCE NS EVENTS CALLS BUFFER CPU,...");
	o.instance = c.instance = argv[1];
	c.ns = argv[2];
	c.load.calls = atol(argv[4]);
	c.buffer = strtoull(argv[5], NULL, 10);
	take_cpus(&c, argv[6]);
	if (perfpersist_connect(&o, &c.p) < 0)
		die("%s", perfpersist_error(NULL));
	make_name(&c, &c.all, "all", argv[3]);
	make_sources(&c);
	snprintf(folder, sizeof(folder), "/run/perfpersist-%s/registry/%s/all", c.instance, c.ns);
	programs_find(&c.programs, folder);

	prctl(PR_SET_NAME, COMM);
	load_run(&c.load);
	read_name(&c, &c.all);
	for (size_t i = 0; i < c.n; i++)
		if (has_alone(&c.sources[i]))
			read_name(&c, &c.sources[i].alone);
	for (size_t i = 0; i < c.load.n_cpus; i++)
		check_ring(&c, i);
	judge(&c);

	for (size_t i = 0; i < c.n; i++)
		if (has_alone(&c.sources[i]))
			delete_name(&c, &c.sources[i].alone);
	delete_name(&c, &c.all);
	perfpersist_free(c.p);
	return 0;
}
