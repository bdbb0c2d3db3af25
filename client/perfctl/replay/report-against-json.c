// SPDX-License-Identifier: LGPL-2.1-or-later
/* The same for programs: one JSON object, which also has the changes that are not unusual. Times are in ns; rates and times of a CPU or of waiting are
 * per second, those of the longest instance are not. */
#include "client/perfctl/replay/report-against.h"
#include "client/perfctl/replay/report-latency.h"

static void sources_json(struct json *j, const struct report_against *a)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	size_t n;
	const struct compare_source *sources = compare_records_sources(a->records, &n);

	json_begin(j, "events", '[');
	for (size_t i = 0; i < n; i++) {
		const struct compare_source *s = &sources[i];
		uint64_t width;

		json_begin(j, NULL, '{');
		json_string(j, "event", s->event->name);
		json_bool(j, "history_known", s->history.known);
		json_unsigned(j, "complete", MAX(s->complete, compare_begin(g)));
		json_unsigned(j, "slices", compare_history(g, s->complete, &width));
		json_unsigned(j, "slice", width);
		json_unsigned(j, "missed", s->history.missed);
		json_bool(j, "missed_at_least", s->history.missed_at_least);
		json_unsigned(j, "limited", s->history.limited);
		json_unsigned(j, "lost", s->history.lost);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void name_json(struct json *j, const struct report_against *a, const char *key,
		      uint32_t name)
{
	const char *text = compare_text(a->compared, name);

	if (text && *text)
		json_string(j, key, text);
}

void against_change_json(struct json *j, const struct report_against *a,
			 const struct compare_change *c)
{
	const struct compare_item *item = c->item;
	const char *parent = item->comm == COMPARE_NO_NAME
				     ? NULL
				     : compare_records_parent(a->records, item->comm);
	uint32_t cpu = item->class == COMPARE_EVENT ? against_cpu(a, c) : UINT32_MAX;

	json_string(j, "kind", against_words[item->class].key);
	name_json(j, a, "comm", item->comm);
	name_json(j, a, "what", item->what);
	if (parent)
		json_string(j, "parent", parent);
	if (cpu != UINT32_MAX)
		json_unsigned(j, "cpu", cpu);
	json_double(j, "now", c->now);
	json_double(j, "median", c->median);
	json_double(j, "min", c->min);
	json_double(j, "max", c->max);
	json_unsigned(j, "slices", c->slices);
	json_unsigned(j, "slice", c->width);
	json_bool(j, "is_unusual", c->is_unusual);
	json_bool(j, "is_new", c->is_new);
	if (c->is_new)
		json_null(j, "ranges");
	else
		json_double(j, "ranges", c->distance);
	json_double(j, "excess", c->excess);
	json_bool(j, "is_line", c < a->changes + a->n_changes && against_is_line(a, c));
}

int report_against_json(const struct report_against *a)
{
	const struct compare_grid *g = compare_grid_of(a->compared);
	struct json j = { .f = stdout };

	json_begin(&j, NULL, '{');
	json_string(&j, "input", a->report.in->what);
	json_unsigned(&j, "since", g->since);
	json_unsigned(&j, "until", g->until);
	json_unsigned(&j, "before", compare_begin(g));
	json_unsigned(&j, "asked", a->asked);
	json_unsigned(&j, "recorded", a->recorded);
	if (a->report.info->realtime_offset)
		json_unsigned(&j, "realtime_offset", a->report.info->realtime_offset);
	else
		json_null(&j, "realtime_offset");
	sources_json(&j, a);
	json_bool(&j, "findings_lack_time", compare_records_lack_time(a->records));
	json_begin(&j, "findings", '[');
	for (size_t i = 0; i < a->n_findings; i++)
		report_finding_json(&j, a->findings[i]);
	json_end(&j, ']');
	json_begin(&j, "changes", '[');
	for (size_t i = 0; i < a->n_all; i++) {
		json_begin(&j, NULL, '{');
		against_change_json(&j, a, &a->changes[i]);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
	putchar('\n');
	return 0;
}
