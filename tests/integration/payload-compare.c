// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Did events record the same as `perf record` on the same tracepoints at the same time?
 *
 *   payload-compare PERF.DATA INSTANCE NAMESPACE [PLAIN]
 *
 * For each event of the namespace (which must exist before perf starts and after it ends) and each
 * CPU: each of perf's records, from the oldest that our ring still holds, has one of ours with the
 * same thread and the same payload, at its place in the order of time.
 *
 * The reverse proves nothing: the kernel takes perf's events off a CPU for moments, when it puts
 * other events on it, so perf lacks the records of that time.
 *
 * With PLAIN: each event of NAMESPACE has a tp_btf recorder, and a twin in PLAIN with a generic
 * one; both are compared with perf's records, and then with each other (payload-twins.h).
 *
 * Prints a line per event: NAME RECORDER SHAPE compared=N gone=N extra=N missed=N
 * padding=N, where `gone` are records of perf that our ring no longer held, `extra` those that
 * only we have between perf's first and last, and `padding` the bytes that perf's payload is
 * longer; and a line per pair of twins. Exit 0 if all is equal.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/integration/payload-twins.h"
#include "tests/integration/perf-data.h"

#define DEPTH 16 /* how many of our records around the time of perf's record are candidates */

static uint64_t perf_lost;

/* Opens the events of one namespace and appends them to the list. Returns how many there were. */
static size_t open_namespace(struct perfpersist *p, const char *ns, struct tracepoint **list,
			     size_t before)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n;

	if (perfpersist_list(p, ns, &infos, &n) < 0)
		die(perfpersist_error(p));
	*list = reallocarray(*list, before + n + 1, sizeof(**list));
	if (!*list)
		die("no memory");
	for (size_t i = 0; i < n; i++) {
		(*list)[before + i] = (struct tracepoint){ .info = infos[i] };
		open_event(p, &(*list)[before + i]);
	}
	return n;
}

/*
 * namespaces: one or two, and a NULL. Twins have the same name, and the same place among the events
 * of their namespace. Each is copied right after the other, before anything is read, so that both
 * copies cover nearly the same time, however much is written meanwhile.
 */
static struct tracepoint *read_events(const char *instance, char **namespaces, size_t *ret_n,
				      size_t *ret_plain)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct tracepoint *list = NULL;
	struct perfpersist *p;
	size_t n, plain = 0;

	if (perfpersist_connect(&opts, &p) < 0)
		die(perfpersist_error(NULL));
	n = open_namespace(p, namespaces[0], &list, 0);
	if (namespaces[1])
		plain = open_namespace(p, namespaces[1], &list, n);
	perfpersist_free(p);
	for (size_t i = 0; i < MAX(n, plain); i++) {
		if (i < n)
			copy_event(&list[i]);
		if (i < plain)
			copy_event(&list[n + i]);
	}
	for (size_t i = 0; i < n + plain; i++)
		read_event(&list[i]);
	*ret_n = n;
	*ret_plain = plain;
	return list;
}

/* ── what perf recorded ─────────────────────────────────────────────────────────────────── */

/* Appends the record to the lane of each event of that tracepoint; false: there is none. */
static bool append_perf(struct tracepoint *list, size_t n, uint16_t id, uint32_t cpu,
			const struct record *record)
{
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		if (list[i].format.id != id)
			continue;
		for (size_t j = 0; j < list[i].n_lanes; j++)
			if ((uint32_t)list[i].lanes[j].cpu == cpu) {
				append(&list[i].lanes[j].perfs, record);
				found = true;
			}
	}
	return found;
}

static void read_perf(struct perf_data *d, struct tracepoint *list, size_t n)
{
	struct perf_data_sample s;
	int r;

	while ((r = perf_data_next(d, &s)) > 0) {
		struct record record = {
			.time = s.time, .tid = s.tid, .raw = s.raw, .raw_size = s.raw_size
		};
		uint16_t id;

		if (s.raw_size < sizeof(id))
			die("a record of perf's has no payload");
		memcpy(&id, s.raw, sizeof(id));
		if (!append_perf(list, n, id, s.cpu, &record))
			die("perf recorded something else");
	}
	if (r < 0)
		die("perf's file is not understood");
	perf_lost = d->lost;
}

/*
 * perf record reads the head of its buffer twice (perf_mmap__push), and writes records that arrive
 * in between to its file twice. No handler runs twice in a nanosecond, so equal records are one
 * record.
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

/* ── are they the same? ─────────────────────────────────────────────────────────────────── */

/* NULL if they are equal; else the name of the difference. perf has no number for a thread that is
 * almost gone. */
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
 * Our counterpart of perf's record: the nearest equal record without a counterpart yet. It is not
 * always the nearest of all, because a handler may interrupt another of its kind. A generic
 * recorder runs in perf's own handler and before perf's part; a tp_btf program runs before or after
 * it, in the order of attachment.
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

/* Counts our records without a counterpart in the time that perf recorded here. */
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
			t->gone++; /* its own is older than our oldest: a nested handler */
		} else {
			complain(t, nearest, perf);
		}
	}
	if (lane->perfs.n)
		count_extra(t, lane);
}

/* ── telling ────────────────────────────────────────────────────────────────────────────── */

static void print(const struct tracepoint *t)
{
	printf("%s %s ", t->info.event,
	       t->info.recorder == PERFPERSIST_RECORDER_TP_BTF ? "tp_btf" : "generic");
	tp_format_print_shape(&t->format, t->info.event);
	printf(" compared=%zu gone=%zu extra=%zu missed=%" PRIu64 " padding=%u\n", t->compared,
	       t->gone, t->extra, t->info.missed, t->padding);
}

/* ── twins ──────────────────────────────────────────────────────────────────────────────── */

/* The n events of the second namespace follow those of the first. Returns how many twins have an
 * error. */
static size_t compare_twins(struct tracepoint *list, size_t n)
{
	size_t n_cpus = n ? list[0].n_lanes : 0, wrong = 0;
	struct witness witnesses[n_cpus + 1];

	for (size_t i = 0; i < n_cpus; i++)
		witnesses[i] = witness_of(list, 2 * n, list[0].lanes[i].cpu);
	for (size_t i = 0; i < n; i++) {
		struct tracepoint *hot = &list[i], *plain = &list[n + i];

		if (hot->format.id != plain->format.id ||
		    hot->info.recorder != PERFPERSIST_RECORDER_TP_BTF ||
		    plain->info.recorder != PERFPERSIST_RECORDER_GENERIC)
			die("twins are of other tracepoints or recorders than they should");
		wrong += !twins_judge(hot, plain, witnesses);
	}
	for (size_t i = 0; i < n_cpus; i++)
		witness_done(&witnesses[i]);
	return wrong;
}

int main(int argc, char **argv)
{
	struct tracepoint *list;
	struct perf_data data;
	size_t n, n_plain = 0, wrong = 0, repeated = 0;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: payload-compare PERF.DATA INSTANCE NAMESPACE [PLAIN]\n");
		return 2;
	}
	if (!perf_data_open(argv[1], &data))
		die("perf's file is not understood");
	list = read_events(argv[2], argv + 3, &n, &n_plain);
	read_perf(&data, list, n + n_plain);
	for (size_t i = 0; i < n + n_plain; i++) {
		for (size_t j = 0; j < list[i].n_lanes; j++) {
			sort(&list[i].lanes[j].perfs);
			repeated += drop_repeated(&list[i].lanes[j].perfs);
			compare_lane(&list[i], &list[i].lanes[j]);
		}
		print(&list[i]);
		wrong += list[i].wrong;
	}
	if (argc == 5 && n != n_plain)
		die("not every event has a twin");
	if (argc == 5)
		wrong += compare_twins(list, n);
	for (size_t i = 0; i < n + n_plain; i++)
		done(&list[i]);
	if (perf_lost)
		fprintf(stderr, "perf lost %" PRIu64 " records\n", perf_lost);
	if (repeated)
		fprintf(stderr, "perf wrote %zu records twice\n", repeated);
	free(list);
	perf_data_close(&data);
	return wrong ? 1 : 0;
}
