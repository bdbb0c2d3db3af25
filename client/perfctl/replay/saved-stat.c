// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl --saved stat: prints a line for each event of a save, or for each of its CPUs. */
#include "client/perfctl/replay/saved-stat.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/find.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/print/rates.h"

static const struct column columns[] = {
	{ "RECORDS", true }, { "BYTES", true },	  { "MISSED", true }, { "LIMITED", true },
	{ "HELD", true },    { "HISTORY", true }, { "CPU", false },   { "NAME", false },
};

/* The times of the oldest and newest record of a ring, or of all rings. */
struct span {
	uint64_t held, oldest, newest;
};

struct saved_stat {
	const struct call *call;
	struct table table;
	struct json json;
};

static void span_add(struct span *s, const struct span *one)
{
	if (!one->held)
		return;
	s->oldest = s->held ? MIN(s->oldest, one->oldest) : one->oldest;
	s->newest = MAX(s->newest, one->newest);
	s->held += one->held;
}

static int find_span(struct perfpersist_snapshot *snapshot, size_t ring, struct span *ret)
{
	struct perfpersist_cursor *c;
	struct perfpersist_sample sample;
	int r = perfpersist_cursor_new(snapshot, ring, &c);

	if (r < 0)
		return r;
	*ret = (struct span){};
	while (perfpersist_cursor_next(c, &sample) > 0) {
		if (!ret->held++)
			ret->newest = sample.time;
		ret->oldest = sample.time;
	}
	perfpersist_cursor_free(c);
	return 0;
}

static void print_json(struct saved_stat *s, const struct perfpersist_info *info, int cpu,
		       const struct counts *c, const struct span *span)
{
	struct json *j = &s->json;

	json_begin(j, NULL, '{');
	json_string(j, "namespace", info->ns);
	json_string(j, "name", info->name);
	if (cpu >= 0)
		json_unsigned(j, "cpu", (unsigned)cpu);
	json_unsigned(j, "records", c->records);
	json_unsigned(j, "bytes", c->bytes);
	if (c->missed_unknown)
		json_null(j, "missed");
	else
		json_unsigned(j, "missed", c->missed);
	json_bool(j, "missed_at_least", c->missed_at_least);
	json_unsigned(j, "limited", c->limited);
	json_unsigned(j, "held", span->held);
	json_unsigned(j, "history_ns", span->newest - span->oldest);
	json_end(j, '}');
	putchar('\n');
	j->more[0] = false; /* an object a line */
}

static void print(struct saved_stat *s, const struct perfpersist_info *info, int cpu,
		  const struct counts *c, const struct span *span)
{
	struct table *t = &s->table;

	if (s->call->json) {
		print_json(s, info, cpu, c, span);
		return;
	}
	table_cell(t, "%" PRIu64, c->records);
	table_cell(t, "%" PRIu64, c->bytes);
	if (c->missed_unknown)
		table_cell(t, "unknown");
	else
		table_cell(t, "%" PRIu64 "%s", c->missed, c->missed_at_least ? "+" : "");
	table_cell(t, "%" PRIu64, c->limited);
	table_cell(t, "%" PRIu64, span->held);
	table_cell(t, "%.1fs", (double)(span->newest - span->oldest) / 1e9);
	if (cpu < 0)
		table_cell(t, "-");
	else
		table_cell(t, "%d", cpu);
	table_cell(t, "%s/%s", info->ns, info->name);
}

/* Counts of one CPU come only from its ring, which does not know what a tracepoint missed. */
static int print_ring(struct saved_stat *s, struct perfpersist_event *e,
		      const struct perfpersist_info *info, size_t ring, const struct span *span)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	struct counts c;
	int r = perfpersist_ring_stat(e, ring, &stat);

	if (r < 0)
		return r;
	c = (struct counts){
		.records = stat.records,
		.bytes = stat.bytes,
		.limited = stat.limited,
		.missed = stat.missed,
		.missed_unknown =
			info->recorder != PERFPERSIST_RECORDER_OVERFLOW || info->sources > 1,
	};
	print(s, info, perfpersist_ring_cpu(e, ring), &c, span);
	return 0;
}

static int print_rings(struct saved_stat *s, struct perfpersist_event *e,
		       struct perfpersist_snapshot *snapshot, const struct perfpersist_info *info,
		       bool per_cpu)
{
	struct counts c = counts_of(info);
	struct span all = {};
	int r = perfpersist_snapshot_take(snapshot);

	for (size_t i = 0; r >= 0 && i < perfpersist_event_rings(e); i++) {
		struct span one;

		r = find_span(snapshot, i, &one);
		if (r >= 0 && per_cpu)
			r = print_ring(s, e, info, i, &one);
		if (r >= 0)
			span_add(&all, &one);
	}
	if (r >= 0 && !per_cpu)
		print(s, info, -1, &c, &all);
	return r;
}

static int stat_event(struct saved_stat *s, struct perfpersist *p, const char *ns, const char *name,
		      bool per_cpu)
{
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_snapshot *snapshot;
	int r = perfpersist_open(p, ns, name, &e);

	if (r < 0)
		return call_failed(p, r);
	r = perfpersist_event_info(e, &info);
	if (r >= 0)
		r = perfpersist_snapshot_new(e, &snapshot);
	if (r >= 0) {
		r = print_rings(s, e, snapshot, &info, per_cpu);
		perfpersist_snapshot_free(snapshot);
	}
	return r < 0 ? call_failed(NULL, r) : EXIT_OK;
}

int stat_saved(struct call *call, struct perfpersist *p, bool per_cpu)
{
	_cleanup_(table_done) struct table t = { .columns = columns,
						 .n_columns = ARRAY_SIZE(columns) };
	struct saved_stat s = { .call = call, .table = t, .json.f = stdout };
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r = find_events(call, p, call->operands, call->n_operands, &infos, &n);

	for (size_t i = 0; r == EXIT_OK && i < n; i++)
		r = stat_event(&s, p, infos[i].ns, infos[i].name, per_cpu);
	t = s.table; /* which owns the cells */
	if (r == EXIT_OK && !call->json && table_print(&t, stdout) < 0) {
		complain("cannot print the table: out of memory");
		r = EXIT_FAILED;
	}
	return r;
}
