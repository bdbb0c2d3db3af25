// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Did events record what `perf record` recorded of the same tracepoints at the same time?
 *
 *   payload-compare PERF.DATA INSTANCE NAMESPACE
 *
 * For each event of the namespace (they must have been there before perf and after it) and
 * each CPU: to each of perf's records, from the oldest that our ring still holds, belongs one
 * of ours with the same thread and the same payload, at its place in the order of time.
 *
 * The other way round nothing is proved: perf takes its events off a CPU for moments, when
 * anybody's are put on it, and has then none of what was recorded here meanwhile.
 *
 * Prints a line per tracepoint: NAME RECORDER SHAPE compared=N gone=N extra=N missed=N
 * padding=N, where `gone` are records of perf that our ring no longer held, `extra` those that
 * only we have between perf's first and last, and `padding` the bytes that perf's payload is
 * longer. Exit 0 if all is equal.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "tests/integration/perf-data.h"
#include "tests/integration/tp-format.h"

#define DEPTH 16 /* records of ours, from the time of perf's, among which its own must be */

struct record {
	uint64_t time;
	uint32_t tid;
	uint32_t raw_size;
	const void *raw;
	size_t order; /* as written, for those of the same time */
	bool taken;   /* ours: it has a counterpart */
};

struct records {
	struct record *list;
	size_t n, room;
};

/* One CPU of one tracepoint. */
struct lane {
	int cpu;
	struct records ours, perfs;
	bool complete; /* ours begin where the event began */
};

struct tracepoint {
	struct perfpersist_info info;
	struct perfpersist_event *event;
	struct perfpersist_snapshot *snapshot;
	struct tp_format format;
	struct lane *lanes;
	size_t n_lanes;
	size_t compared, gone, extra, absent, wrong;
	uint32_t padding;
};

static uint64_t perf_lost;

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void append(struct records *r, const struct record *record)
{
	if (r->n == r->room) {
		r->room = r->room ? r->room * 2 : 64;
		r->list = reallocarray(r->list, r->room, sizeof(*r->list));
		if (!r->list)
			die("no memory");
	}
	r->list[r->n] = *record;
	r->list[r->n].order = r->n;
	r->n++;
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct records *r)
{
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_time);
}

/*
 * perf record reads the head of its buffer twice (perf_mmap__push), and writes what comes in
 * between to its file twice. No handler runs twice in a nanosecond: the same is the same.
 */
static size_t drop_repeated(struct records *r)
{
	size_t n = 0, before = r->n;

	for (size_t i = 0; i < before; i++) {
		const struct record *last = n ? &r->list[n - 1] : NULL;

		if (last && last->time == r->list[i].time && last->tid == r->list[i].tid &&
		    last->raw_size == r->list[i].raw_size &&
		    !memcmp(last->raw, r->list[i].raw, last->raw_size))
			continue;
		r->list[n++] = r->list[i];
	}
	r->n = n;
	return before - n;
}

/* ── what we recorded ───────────────────────────────────────────────────────────────────── */

static void read_ring(struct tracepoint *t, size_t ring)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	struct lane *lane = &t->lanes[ring];
	struct perfpersist_cursor *c;
	struct perfpersist_sample s;
	int r;

	lane->cpu = perfpersist_ring_cpu(t->event, ring);
	if (perfpersist_cursor_new(t->snapshot, ring, &c) < 0)
		die(perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(c, &s)) > 0)
		append(&lane->ours, &(struct record){ .time = s.time,
						      .tid = s.tid,
						      .raw = s.raw,
						      .raw_size = (uint32_t)s.raw_size });
	perfpersist_cursor_free(c);
	if (r < 0 || perfpersist_ring_stat(t->event, ring, &stat) < 0)
		die("a ring is damaged");
	/* The newest was found first. */
	for (size_t i = 0; i < lane->ours.n; i++)
		lane->ours.list[i].order = lane->ours.n - i;
	sort(&lane->ours);
	/* More may have been written since it was copied: then this is not known. */
	lane->complete = stat.records == lane->ours.n;
}

static void read_event(struct perfpersist *p, struct tracepoint *t)
{
	const char *format;
	size_t size;

	if (perfpersist_open_by_id(p, t->info.id, &t->event) < 0)
		die(perfpersist_error(p));
	if (perfpersist_event_info(t->event, &t->info) < 0 ||
	    perfpersist_snapshot_new(t->event, &t->snapshot) < 0 ||
	    perfpersist_snapshot_take(t->snapshot) < 0)
		die(perfpersist_error(NULL));
	format = perfpersist_event_format(t->event, &size);
	if (!format || !tp_format_parse(format, size, &t->format))
		die("an event has no format");
	t->n_lanes = perfpersist_event_rings(t->event);
	t->lanes = calloc(t->n_lanes, sizeof(*t->lanes));
	if (!t->lanes)
		die("no memory");
	for (size_t i = 0; i < t->n_lanes; i++)
		read_ring(t, i);
}

static struct tracepoint *read_events(const char *instance, const char *ns, size_t *ret_n)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	struct tracepoint *list;
	struct perfpersist *p;

	if (perfpersist_connect(&opts, &p) < 0)
		die(perfpersist_error(NULL));
	if (perfpersist_list(p, ns, &infos, ret_n) < 0)
		die(perfpersist_error(p));
	list = calloc(*ret_n + 1, sizeof(*list));
	if (!list)
		die("no memory");
	for (size_t i = 0; i < *ret_n; i++) {
		list[i].info = infos[i];
		read_event(p, &list[i]);
	}
	perfpersist_free(p);
	return list;
}

static void done(struct tracepoint *t)
{
	for (size_t i = 0; i < t->n_lanes; i++) {
		free(t->lanes[i].ours.list);
		free(t->lanes[i].perfs.list);
	}
	free(t->lanes);
	perfpersist_snapshot_free(t->snapshot);
	perfpersist_event_free(t->event);
}

/* ── what perf recorded ─────────────────────────────────────────────────────────────────── */

static struct lane *lane_of(struct tracepoint *list, size_t n, uint16_t id, uint32_t cpu)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].format.id != id)
			continue;
		for (size_t j = 0; j < list[i].n_lanes; j++)
			if ((uint32_t)list[i].lanes[j].cpu == cpu)
				return &list[i].lanes[j];
	}
	return NULL;
}

static void read_perf(struct perf_data *d, struct tracepoint *list, size_t n)
{
	struct perf_data_sample s;
	int r;

	while ((r = perf_data_next(d, &s)) > 0) {
		struct lane *lane;
		uint16_t id;

		if (s.raw_size < sizeof(id))
			die("a record of perf's has no payload");
		memcpy(&id, s.raw, sizeof(id));
		lane = lane_of(list, n, id, s.cpu);
		if (!lane)
			die("perf recorded something else");
		append(&lane->perfs, &(struct record){ .time = s.time,
						       .tid = s.tid,
						       .raw = s.raw,
						       .raw_size = s.raw_size });
	}
	if (r < 0)
		die("perf's file is not understood");
	perf_lost = d->lost;
}

/* ── are they the same? ─────────────────────────────────────────────────────────────────── */

/* NULL: equal; else what differs. For a thread that is as good as gone perf has no number. */
static const char *difference(const struct tp_format *f, const struct record *our,
			      const struct record *perf)
{
	if (our->tid != perf->tid && perf->tid != UINT32_MAX)
		return "the thread";
	if (our->raw_size > perf->raw_size || our->raw_size + 8 < perf->raw_size)
		return "the payload's size";
	return tp_format_compare(f, our->raw, our->raw_size, perf->raw, perf->raw_size);
}

static void dump(const char *whose, const struct record *r)
{
	fprintf(stderr, "  %-6s time %" PRIu64 " thread %u:", whose, r->time, r->tid);
	for (uint32_t i = 0; i < r->raw_size && i < 128; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", ((const uint8_t *)r->raw)[i]);
	fprintf(stderr, "\n");
}

static void complain(struct tracepoint *t, const struct record *our, const struct record *perf)
{
	if (t->wrong++ > 2)
		return;
	fprintf(stderr, "%s: %s\n", t->info.event,
		!our	? "we have none for this one of perf's"
		: !perf ? "perf has none for this one of ours"
			: difference(&t->format, our, perf));
	if (perf)
		dump("perf's", perf);
	if (our)
		dump("ours", our);
}

/*
 * Ours that belongs to perf's record: the nearest that is the same and has no counterpart yet.
 * Not always the nearest of all, because a handler may be interrupted by another of its kind.
 * A generic recorder runs in perf's own handler and before it; a tp_btf program before it or
 * behind it, as they were attached.
 */
static struct record *counterpart(const struct tracepoint *t, struct records *ours, size_t older,
				  const struct record *perf, struct record **ret_nearest)
{
	bool either = t->info.recorder == PERFPERSIST_RECORDER_TP_BTF;

	*ret_nearest = NULL;
	for (size_t k = 0; k < DEPTH; k++) {
		struct record *candidates[] = {
			k < older ? &ours->list[older - 1 - k] : NULL,
			either && older + k < ours->n ? &ours->list[older + k] : NULL,
		};

		for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
			struct record *our = candidates[i];

			if (!our || our->taken)
				continue;
			if (!difference(&t->format, our, perf))
				return our;
			*ret_nearest = *ret_nearest ?: our;
		}
	}
	return NULL;
}

/* What only we have of the time in which perf recorded here. */
static void count_extra(struct tracepoint *t, const struct lane *lane)
{
	uint64_t first = lane->perfs.list[0].time, last = lane->perfs.list[lane->perfs.n - 1].time;

	for (size_t i = 0; i < lane->ours.n; i++) {
		const struct record *our = &lane->ours.list[i];

		t->extra += !our->taken && our->time >= first && our->time <= last;
	}
}

static void compare_lane(struct tracepoint *t, struct lane *lane)
{
	size_t older = 0;

	for (size_t i = 0; i < lane->perfs.n; i++) {
		const struct record *perf = &lane->perfs.list[i];
		struct record *our, *nearest;

		while (older < lane->ours.n && lane->ours.list[older].time <= perf->time)
			older++;
		if (!lane->complete && (!lane->ours.n || perf->time < lane->ours.list[0].time)) {
			t->gone++;
			continue;
		}
		our = counterpart(t, &lane->ours, older, perf, &nearest);
		if (our) {
			our->taken = true;
			t->compared++;
			t->padding = MAX(t->padding, perf->raw_size - our->raw_size);
		} else if (t->info.recorder == PERFPERSIST_RECORDER_TP_BTF &&
			   t->absent < t->info.missed) {
			t->absent++;
		} else if (!lane->complete && older < DEPTH) {
			t->gone++; /* its own was written before the oldest, in a nested handler */
		} else {
			complain(t, nearest, perf);
		}
	}
	if (lane->perfs.n)
		count_extra(t, lane);
}

/* ── telling ────────────────────────────────────────────────────────────────────────────── */

/* What is special about a tracepoint's payload, as words with commas between. */
static void print_shape(const struct tp_format *f, bool syscall)
{
	const struct tp_format_field *last = &f->fields[f->n - 1];
	size_t dynamic = tp_format_dynamic(f);
	bool array = false, rel_loc = false;

	for (size_t i = 0; i < f->n; i++) {
		array |= f->fields[i].array;
		rel_loc |= f->fields[i].rel_loc;
	}
	fputs(dynamic == 0 ? "fixed" : dynamic == 1 ? "one-dynamic" : "several-dynamic", stdout);
	if (f->n == 4)
		fputs(",no-field", stdout);
	if (f->end % 8)
		fputs(f->end % 4 ? ",odd-end" : ",end-on-4", stdout);
	if (last->size <= 2)
		fputs(last->size == 1 ? ",u8-tail" : ",u16-tail", stdout);
	if (array)
		fputs(",char-array", stdout);
	if (rel_loc)
		fputs(",rel-loc", stdout);
	if (syscall)
		fputs(strstr(f->name, "sys_enter") ? ",sys-enter" : ",sys-exit", stdout);
}

static void print(const struct tracepoint *t)
{
	printf("%s %s ", t->info.event,
	       t->info.recorder == PERFPERSIST_RECORDER_TP_BTF ? "tp_btf" : "generic");
	print_shape(&t->format, !strncmp(t->info.event, "syscalls:", 9));
	printf(" compared=%zu gone=%zu extra=%zu missed=%" PRIu64 " padding=%u\n", t->compared,
	       t->gone, t->extra, t->info.missed, t->padding);
}

int main(int argc, char **argv)
{
	struct tracepoint *list;
	struct perf_data data;
	size_t n, wrong = 0, repeated = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: payload-compare PERF.DATA INSTANCE NAMESPACE\n");
		return 2;
	}
	if (!perf_data_open(argv[1], &data))
		die("perf's file is not understood");
	list = read_events(argv[2], argv[3], &n);
	read_perf(&data, list, n);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < list[i].n_lanes; j++) {
			sort(&list[i].lanes[j].perfs);
			repeated += drop_repeated(&list[i].lanes[j].perfs);
			compare_lane(&list[i], &list[i].lanes[j]);
		}
		print(&list[i]);
		wrong += list[i].wrong;
		done(&list[i]);
	}
	if (perf_lost)
		fprintf(stderr, "perf lost %" PRIu64 " records\n", perf_lost);
	if (repeated)
		fprintf(stderr, "perf wrote %zu records twice\n", repeated);
	free(list);
	perf_data_close(&data);
	return wrong ? 1 : 0;
}
