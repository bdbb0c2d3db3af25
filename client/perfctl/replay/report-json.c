// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The report for programs: the same sums as one JSON object, without percentages.
 */
#include <string.h>

#include "client/perfctl/pictures/process-tree.h"
#include "client/perfctl/replay/report.h"

static void weight_json(struct json *j, const char *samples, const char *period,
			const struct weight *w)
{
	json_unsigned(j, samples, w->samples);
	json_unsigned(j, period, w->period);
}

void report_head_json(struct json *j, const struct report *report)
{
	const struct trace_info *info = report->info;

	json_string(j, "input", report->in->what);
	json_string(j, "hostname", info->hostname ?: "");
	json_string(j, "release", info->release ?: "");
	json_string(j, "arch", info->arch ?: "");
	json_unsigned(j, "cpus_online", info->nr_cpus_online);
	json_unsigned(j, "records", report->a->samples);
	json_unsigned(j, "first", report->a->first);
	json_unsigned(j, "last", report->a->last);
	if (info->realtime_offset)
		json_unsigned(j, "realtime_offset", info->realtime_offset);
	else
		json_null(j, "realtime_offset");
	json_unsigned(j, "lost", report->a->lost);
	json_unsigned(j, "nameless", report->a->nameless);
}

void report_history_json(struct json *j, const struct trace_history *h)
{
	if (!h->known) {
		json_null(j, "history");
		return;
	}
	json_begin(j, "history", '{');
	json_unsigned(j, "from", h->from);
	json_unsigned(j, "to", h->to);
	json_unsigned(j, "lost", h->lost);
	json_unsigned(j, "missed", h->missed);
	json_bool(j, "missed_at_least", h->missed_at_least);
	json_unsigned(j, "limited", h->limited);
	json_end(j, '}');
}

static void row_json(struct json *j, const struct report *report, const struct hot_row *row)
{
	json_begin(j, NULL, '{');
	if (report->o->sort & SORT_PID)
		json_signed(j, "pid", (int32_t)row->pid);
	if (report->o->sort & SORT_TID)
		json_signed(j, "tid", (int32_t)row->tid);
	if (report->o->sort & SORT_COMM)
		json_string(j, "comm", row->comm);
	if (row->frame && report->o->sort & SORT_DSO) {
		json_string(j, "dso", row->frame->dso);
		if (row->frame->file)
			json_string(j, "path", row->frame->file->path);
	}
	if (row->frame && report->o->sort & SORT_SYMBOL) {
		json_string(j, "symbol", row->frame->symbol);
		json_bool(j, "kernel", row->frame->kernel);
	}
	weight_json(j, "samples", "period", &row->self);
	if (report->o->children)
		weight_json(j, "total_samples", "total_period", &row->total);
	json_end(j, '}');
}

static int symbols_json(struct json *j, const struct report *report, const struct event_sum *e)
{
	_cleanup_(hot_done) struct hot hot = {};

	if (hot_new(e, report->o->sort, report->o->children, &hot) < 0)
		return -ENOMEM;
	json_begin(j, "symbols", '[');
	for (size_t i = 0; i < hot.n && i < report->o->top; i++) {
		const struct hot_row *row = &hot.rows[i];
		uint64_t weight = report->o->children ? row->total.period : row->self.period;

		if (report_percent(weight, e->weight.period) < MAX(report->o->percent_limit, 0))
			break;
		row_json(j, report, row);
	}
	json_end(j, ']');
	json_unsigned(j, "different_symbols", hot.n);
	return 0;
}

void report_stack_json(struct json *j, const struct flame_node *leaf)
{
	const struct flame_node *path[256];
	size_t n = 0;

	for (; leaf->parent && n < ARRAY_SIZE(path); leaf = leaf->parent)
		path[n++] = leaf;
	json_begin(j, "stack", '[');
	while (n-- > 0)
		json_string(j, NULL, path[n]->frame ? path[n]->frame->symbol : path[n]->comm);
	json_end(j, ']');
}

static int heavier(const void *left, const void *right)
{
	const struct flame_node *l = *(const struct flame_node *const *)left;
	const struct flame_node *node = *(const struct flame_node *const *)right;

	if (l->self.period != node->self.period)
		return l->self.period > node->self.period ? -1 : 1;
	return l->index < node->index ? -1 : l->index > node->index;
}

static int chains_json(struct json *j, const struct report *report, const struct event_sum *e)
{
	_cleanup_free_ const struct flame_node **leaves =
		calloc(report->a->n_nodes, sizeof(*leaves));
	size_t n = 0;

	if (!leaves)
		return -ENOMEM;
	for (const struct flame_node *node = flame_next(e->root); node; node = flame_next(node))
		if (node->self.samples)
			leaves[n++] = node;
	qsort(leaves, n, sizeof(*leaves), heavier);
	json_begin(j, "chains", '[');
	for (size_t i = 0; i < n && i < report->o->top; i++) {
		json_begin(j, NULL, '{');
		report_stack_json(j, leaves[i]);
		weight_json(j, "samples", "period", &leaves[i]->self);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_unsigned(j, "different_chains", n);
	return 0;
}

static int event_json(struct json *j, const struct report *report, const struct event_sum *e)
{
	struct trace_history history = trace_history(report->in->trace, e->event->index);
	int r;

	json_begin(j, NULL, '{');
	json_string(j, "event", e->event->name);
	weight_json(j, "records", "period", &e->weight);
	json_unsigned(j, "first", e->first);
	json_unsigned(j, "last", e->last);
	report_history_json(j, &history);
	json_begin(j, "cpus", '{');
	for (uint32_t c = 0; c < report->a->n_cpus; c++) {
		uint64_t samples = cpu_counts_get(&e->cpus, c);
		char key[24];

		if (!samples)
			continue;
		snprintf(key, sizeof(key), "%u", c);
		json_unsigned(j, key, samples);
	}
	json_end(j, '}');
	r = symbols_json(j, report, e);
	if (r >= 0 && report->o->graph)
		r = chains_json(j, report, e);
	json_end(j, '}');
	return r;
}

static void process_json(struct json *j, const struct report *report, const struct process_sum *s)
{
	json_begin(j, NULL, '{');
	if (s->pid == UINT32_MAX)
		json_null(j, "pid");
	else
		json_unsigned(j, "pid", s->pid);
	json_string(j, "comm", s->comm);
	json_unsigned(j, "records", s->samples);
	if (report->a->has_about)
		json_unsigned(j, "about", s->about);
	if (report->a->has_switches) {
		json_unsigned(j, "on_cpu_ns", s->run);
		json_unsigned(j, "switches", s->switches);
	}
	json_begin(j, "cpus", '[');
	for (size_t c = 0; c < s->n_words * 64; c++)
		if (s->cpus[c / 64] >> c % 64 & 1)
			json_unsigned(j, NULL, c);
	json_end(j, ']');
	json_end(j, '}');
}

/* parent: an index in the array. */
static int tree_json(struct json *j, const struct report *report)
{
	_cleanup_(process_tree_done) struct process_tree tree = {};

	if (process_tree_new(report->a, 0, &tree) < 0)
		return -ENOMEM;
	json_begin(j, "process_tree", '[');
	for (size_t i = 0; i < tree.n; i++) {
		const struct process_group *g = &tree.groups[i];

		json_begin(j, NULL, '{');
		json_string(j, "comm", g->comm);
		json_unsigned(j, "processes", g->n);
		if (g->pid == UINT32_MAX || g->n > 1)
			json_null(j, "pid");
		else
			json_unsigned(j, "pid", g->pid);
		if (g->parent == PROCESS_NO_PARENT)
			json_null(j, "parent");
		else
			json_unsigned(j, "parent", g->parent);
		json_unsigned(j, "records", g->samples);
		if (report->a->has_about)
			json_unsigned(j, "about", g->about);
		if (report->a->has_switches) {
			json_unsigned(j, "on_cpu_ns", g->run);
			json_unsigned(j, "switches", g->switches);
		}
		json_end(j, '}');
	}
	json_end(j, ']');
	return 0;
}

int report_json(const struct report *report)
{
	struct json j = { .f = stdout };
	int r = 0;

	json_begin(&j, NULL, '{');
	report_head_json(&j, report);
	json_begin(&j, "events", '[');
	for (size_t i = 0; i < report->a->n_events && r >= 0; i++)
		r = event_json(&j, report, &report->a->events[i]);
	json_end(&j, ']');
	json_begin(&j, "processes", '[');
	for (size_t i = 0; i < report->a->n_processes && i < report->o->top; i++)
		process_json(&j, report, &report->a->processes[i]);
	json_end(&j, ']');
	json_unsigned(&j, "different_processes", report->a->n_processes);
	if (r >= 0)
		r = tree_json(&j, report);
	json_end(&j, '}');
	putchar('\n');
	return r;
}
