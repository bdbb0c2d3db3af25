// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Do a tp_btf and a generic recorder of the same tracepoint record the same?
 *
 *   tp-btf-compare INSTANCE HOT PLAIN
 *
 * For each event of namespace HOT, which must have a tp_btf recorder, there is one of the same
 * name in PLAIN, which must have a generic one. On each CPU, in the time that both rings still
 * tell of, to each record of the one belongs one of the other, in the same order, by the same
 * thread, with the same payload to the last byte. One that only one of them has must be among
 * those that the other says it missed.
 *
 * Prints a line per tracepoint: NAME equal=N hot-only=N plain-only=N hot-missed=N
 * plain-missed=N. Exit 0 if all is as it must be.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "tests/integration/tp-format.h"

#define EDGE 16 /* records at the edges of the time, whose counterpart may be outside */
#define NEAR 64 /* records, forth and back, among which a counterpart is looked for */

struct record {
	struct perfpersist_sample sample;
	bool paired;
};

/* One event, all of it copied. */
struct side {
	struct perfpersist_info info;
	struct perfpersist_event *event;
	struct perfpersist_snapshot *snapshot;
};

/* One CPU of it, in the order it was written. */
struct lane {
	struct record *list;
	size_t n;
};

struct result {
	size_t equal, hot_only, plain_only;
};

static struct perfpersist *connection;
static struct tp_format format; /* of the tracepoint that is looked at */

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* missed is as of an opening: so once more, behind the copy. */
static void side_open(struct side *s, const char *ns, const char *name, uint32_t recorder)
{
	if (perfpersist_open(connection, ns, name, &s->event) < 0)
		die(perfpersist_error(connection));
	if (perfpersist_snapshot_new(s->event, &s->snapshot) < 0 ||
	    perfpersist_snapshot_take(s->snapshot) < 0)
		die(perfpersist_error(NULL));
	s->info = (struct perfpersist_info){ .sz = sizeof(s->info) };
	if (perfpersist_show(connection, ns, name, &s->info) < 0)
		die(perfpersist_error(connection));
	if (s->info.recorder != recorder) {
		fprintf(stderr, "%s/%s: has another recorder than it should\n", ns, name);
		exit(1);
	}
}

static void side_close(struct side *s)
{
	perfpersist_snapshot_free(s->snapshot);
	perfpersist_event_free(s->event);
}

static struct lane lane_read(const struct side *s, size_t ring)
{
	struct perfpersist_sample sample;
	struct perfpersist_cursor *c;
	struct lane lane = {};
	size_t room = 0;
	int r;

	if (perfpersist_cursor_new(s->snapshot, ring, &c) < 0)
		die(perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(c, &sample)) > 0) {
		if (lane.n == room) {
			room = room ? room * 2 : 256;
			lane.list = reallocarray(lane.list, room, sizeof(*lane.list));
			if (!lane.list)
				die("no memory");
		}
		lane.list[lane.n++] = (struct record){ .sample = sample };
	}
	if (r < 0)
		die("a ring is damaged");
	perfpersist_cursor_free(c);
	/* The newest came first. */
	for (size_t i = 0; i < lane.n / 2; i++) {
		struct record last = lane.list[lane.n - 1 - i];

		lane.list[lane.n - 1 - i] = lane.list[i];
		lane.list[i] = last;
	}
	return lane;
}

/* ── comparing ──────────────────────────────────────────────────────────────────────────── */

/* From one byte on up to another. */
static bool equal_part(const struct perfpersist_sample *a, const struct perfpersist_sample *b,
		       size_t from, size_t to)
{
	return !memcmp((const char *)a->raw + from, (const char *)b->raw + from, to - from);
}

static bool equal(const struct perfpersist_sample *a, const struct perfpersist_sample *b)
{
	if (a->pid != b->pid || a->tid != b->tid || a->raw_size != b->raw_size)
		return false;
	for (size_t i = 0; i < format.n; i++) {
		const struct tp_format_field *f = &format.fields[i];

		if (f->offset + f->size <= a->raw_size && tp_format_is_reaped(f, a->raw, b->raw))
			return equal_part(a, b, 0, f->offset) &&
			       equal_part(a, b, f->offset + f->size, a->raw_size);
	}
	return equal_part(a, b, 0, a->raw_size);
}

static void dump(const char *whose, const struct perfpersist_sample *s)
{
	fprintf(stderr, "  %-8s time %" PRIu64 " thread %u, %zu bytes:", whose, s->time, s->tid,
		s->raw_size);
	for (size_t i = 0; i < s->raw_size && i < 128; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", ((const uint8_t *)s->raw)[i]);
	fprintf(stderr, "\n");
}

static uint64_t distance(const struct record *a, const struct record *b)
{
	uint64_t x = a->sample.time, y = b->sample.time;

	return x < y ? y - x : x - y;
}

/* Of those around index `at` that are equal to r and nobody's yet, the nearest in time. */
static struct record *counterpart(struct lane *lane, size_t at, const struct record *r)
{
	struct record *nearest = NULL;

	for (size_t i = at > NEAR ? at - NEAR : 0; i < MIN(at + NEAR, lane->n); i++) {
		struct record *other = &lane->list[i];

		if (!other->paired && equal(&other->sample, &r->sample) &&
		    (!nearest || distance(other, r) < distance(nearest, r)))
			nearest = other;
	}
	return nearest;
}

static size_t pair(struct lane *hot, struct lane *plain)
{
	size_t at = 0, n = 0;

	for (size_t i = 0; i < plain->n; i++) {
		struct record *r = &plain->list[i], *other;

		while (at < hot->n && hot->list[at].sample.time < r->sample.time)
			at++;
		if (at == 0) /* before the other's time */
			continue;
		other = counterpart(hot, at, r);
		if (!other)
			continue;
		other->paired = r->paired = true;
		n++;
	}
	return n;
}

/* Those of one lane without counterpart, in the time that the other one tells of, too. */
static size_t alone(const struct lane *lane, const struct lane *other, const char *whose,
		    uint64_t allowed)
{
	size_t n = 0;

	if (other->n <= 2 * EDGE)
		return 0;
	for (size_t i = EDGE; i + EDGE < lane->n; i++) {
		const struct record *r = &lane->list[i];

		if (r->paired || r->sample.time < other->list[EDGE].sample.time ||
		    r->sample.time > other->list[other->n - 1 - EDGE].sample.time)
			continue;
		if (n++ >= allowed && n < allowed + 4)
			dump(whose, &r->sample);
	}
	return n;
}

static struct result compare(struct side *hot, struct side *plain)
{
	struct result result = {};

	for (size_t i = 0; i < perfpersist_event_rings(hot->event); i++) {
		struct lane h = lane_read(hot, i), p = lane_read(plain, i);

		if (perfpersist_ring_cpu(hot->event, i) != perfpersist_ring_cpu(plain->event, i))
			die("the events are on different CPUs");
		result.equal += pair(&h, &p);
		result.hot_only += alone(&h, &p, "tp_btf", plain->info.missed);
		result.plain_only += alone(&p, &h, "generic", hot->info.missed);
		free(h.list);
		free(p.list);
	}
	return result;
}

/* Returns whether all is as it must be. */
static bool compare_events(const struct perfpersist_info *info, const char *plain_ns)
{
	struct side hot = {}, plain = {};
	struct result r;
	const char *text;
	size_t size;
	bool good;

	side_open(&hot, info->ns, info->name, PERFPERSIST_RECORDER_TP_BTF);
	side_open(&plain, plain_ns, info->name, PERFPERSIST_RECORDER_GENERIC);
	text = perfpersist_event_format(hot.event, &size);
	if (!text || !tp_format_parse(text, size, &format))
		die("an event has no format");
	r = compare(&hot, &plain);
	good = (r.hot_only <= plain.info.missed || plain.info.missed_unknown) &&
	       r.plain_only <= hot.info.missed;
	printf("%-30s equal=%-6zu hot-only=%zu plain-only=%zu hot-missed=%" PRIu64
	       " plain-missed=%" PRIu64 "%s\n",
	       info->event, r.equal, r.hot_only, r.plain_only, hot.info.missed, plain.info.missed,
	       good ? "" : " DIFFERENT");
	side_close(&hot);
	side_close(&plain);
	return good;
}

int main(int argc, char **argv)
{
	struct perfpersist_options opts = { .sz = sizeof(opts) };
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n, wrong = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: tp-btf-compare INSTANCE HOT PLAIN\n");
		return 2;
	}
	opts.instance = argv[1];
	if (perfpersist_connect(&opts, &connection) < 0)
		die(perfpersist_error(NULL));
	if (perfpersist_list(connection, argv[2], &infos, &n) < 0)
		die(perfpersist_error(connection));
	for (size_t i = 0; i < n; i++)
		wrong += !compare_events(&infos[i], argv[3]);
	perfpersist_free(connection);
	return n && !wrong ? 0 : 1;
}
