// SPDX-License-Identifier: LGPL-2.1-or-later
/* The same for programs: one JSON object. All times are in ns. */
#include "client/perfctl/replay/report-latency.h"

static void row_json(struct json *j, const struct latency_words *w, const struct latency_row *row)
{
	json_begin(j, NULL, '{');
	if (w->of_processes) {
		json_unsigned(j, "pid", row->pid);
		json_string(j, "comm", row->comm);
	}
	json_string(j, w->label_key, row->label);
	json_unsigned(j, "count", row->n);
	json_unsigned(j, "sum", row->sum);
	json_unsigned(j, "p50", latency_percentile(row, 500));
	json_unsigned(j, "p90", latency_percentile(row, 900));
	json_unsigned(j, "p99", latency_percentile(row, 990));
	json_unsigned(j, "p999", latency_percentile(row, 999));
	json_unsigned(j, "max", row->all[row->n - 1]);
	json_end(j, '}');
}

static void who_json(struct json *j, const char *key, const struct latency_who *who)
{
	json_begin(j, key, '{');
	json_unsigned(j, "tid", who->tid);
	json_string(j, "comm", *who->comm ? who->comm : "?");
	json_end(j, '}');
}

static void interval_json(struct json *j, const struct latency_words *w,
			  const struct latency_interval *one, bool is_open)
{
	json_begin(j, NULL, '{');
	json_unsigned(j, "duration", one->end - one->begin);
	json_unsigned(j, "begin", one->begin);
	if (!is_open)
		json_unsigned(j, "cpu", one->cpu);
	json_unsigned(j, "pid", one->pid);
	json_unsigned(j, "tid", one->who.tid);
	json_string(j, "comm", *one->who.comm ? one->who.comm : "?");
	json_string(j, w->label_key, one->label);
	if (one->was_woken)
		who_json(j, "waker", &one->waker);
	if (one->woken > one->begin)
		json_unsigned(j, "woken", one->woken);
	if (one->chain)
		report_stack_json(j, one->chain);
	json_end(j, '}');
}

static void list_json(struct json *j, const char *key, const struct latency_words *w,
		      const struct latency_list *list, bool is_open)
{
	json_begin(j, key, '[');
	for (size_t i = 0; i < list->n; i++)
		interval_json(j, w, &list->all[i], is_open);
	json_end(j, ']');
}

static void places_json(struct json *j, const struct latency_sums *s, uint64_t top)
{
	json_begin(j, "chains", '[');
	for (size_t i = 0; i < s->n_places && i < top; i++) {
		const struct latency_place *p = &s->places[i];

		json_begin(j, NULL, '{');
		report_stack_json(j, p->chain);
		json_unsigned(j, "count", p->n);
		json_unsigned(j, "sum", p->sum);
		json_unsigned(j, "max", p->max);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_unsigned(j, "different_chains", s->n_places);
}

void report_latency_kind_json(struct json *j, const struct latency_words *w,
			      const struct latency_sums *s, const struct trace_history *history,
			      uint64_t top)
{
	report_history_json(j, history);
	json_unsigned(j, "count", s->n);
	json_unsigned(j, "sum", s->sum);
	json_unsigned(j, "begun_before", s->begun_before);
	json_unsigned(j, "missing", s->missing);
	json_unsigned(j, "not_ended", s->n_open);
	json_begin(j, "rows", '[');
	for (size_t i = 0; i < s->n_rows && i < top; i++)
		row_json(j, w, &s->rows[i]);
	json_end(j, ']');
	json_unsigned(j, "different_rows", s->n_rows);
	places_json(j, s, top);
	list_json(j, "longest", w, &s->worst, false);
	list_json(j, "open", w, &s->open, true);
}

static void kind_of(struct json *j, unsigned kind, const struct latency *l,
		    const struct trace_history *history, uint64_t top)
{
	json_begin(j, latency_words[kind].key, '{');
	report_latency_kind_json(j, &latency_words[kind], latency_sums(l, kind), history, top);
	json_end(j, '}');
}

int report_latency_json(const struct report *report, const struct latency *l, uint32_t kinds,
			const struct trace_history *histories)
{
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	report_head_json(&j, report);
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (kinds >> kind & 1)
			kind_of(&j, kind, l, &histories[kind], report->o->top);
	json_end(&j, '}');
	putchar('\n');
	return 0;
}
