// SPDX-License-Identifier: LGPL-2.1-or-later
/* The report for people: processes below their parents. */
#include <inttypes.h>

#include "client/perfctl/pictures/process-tree.h"
#include "client/perfctl/replay/report.h"

static void process_cells(struct table *t, const struct report *r, const struct process_group *g,
			  const char *cpus)
{
	table_cell(t, "%" PRIu64, g->samples);
	table_cell(t, "%.2f%%", report_percent(g->samples, r->a->samples));
	if (r->a->has_about)
		table_cell(t, "%" PRIu64, g->about);
	if (r->a->has_switches) {
		table_cell(t, "%.3f ms", (double)g->run / 1e6);
		table_cell(t, "%.2f%%", report_percent(g->run, r->a->run + r->a->idle));
		table_cell(t, "%" PRIu64, g->switches);
	}
	table_cell(t, "%s", *cpus ? cpus : "-");
	table_cell(t, "%" PRIu64, g->n);
	if (g->pid == UINT32_MAX)
		table_cell(t, "?");
	else if (g->n > 1)
		table_cell(t, "-");
	else
		table_cell(t, "%" PRIu32, g->pid);
	table_cell(t, "%*s%s", (int)MIN(2 * g->depth, 40U), "", g->comm);
}

static int process_rows(struct table *t, const struct report *r, const struct process_tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < tree->n; i++) {
		const struct process_group *g = &tree->groups[i];
		_cleanup_free_ char *cpus = report_cpus(g->cpus, g->n_words);

		if (!cpus)
			return -ENOMEM;
		if (g->shown)
			process_cells(t, r, g, cpus);
		n += g->shown;
	}
	if (table_print(t, stdout) < 0)
		return -ENOMEM;
	if (n < tree->n)
		printf("(%zu more)\n", tree->n - n);
	return 0;
}

static size_t process_columns(const struct aggregate *a, struct column *columns)
{
	size_t n = 0;

	columns[n++] = (struct column){ "RECORDS", true };
	columns[n++] = (struct column){ "OF ALL", true };
	if (a->has_about)
		columns[n++] = (struct column){ "ABOUT", true };
	if (a->has_switches) {
		columns[n++] = (struct column){ "ON CPU", true };
		columns[n++] = (struct column){ "OF THE TIME", true };
		columns[n++] = (struct column){ "SWITCHES", true };
	}
	columns[n++] = (struct column){ "CPUS", false };
	columns[n++] = (struct column){ "PROCESSES", true };
	columns[n++] = (struct column){ "PID", true };
	columns[n++] = (struct column){ "COMMAND", false };
	return n;
}

int report_processes(const struct report *r)
{
	const struct aggregate *a = r->a;
	struct column columns[10];
	_cleanup_(process_tree_done) struct process_tree tree = {};
	_cleanup_(table_done) struct table t = {
		.columns = columns,
		.n_columns = process_columns(a, columns),
		.width = r->width,
	};

	if (process_tree_new(a, r->o->top, &tree) < 0)
		return -ENOMEM;
	puts("\nProcesses, below their parents");
	if (process_rows(&t, r, &tree) < 0)
		return -ENOMEM;
	if (a->has_switches)
		printf("CPUs were busy for %.3f ms and idle for %.3f ms, according to "
		       "sched_switch\n",
		       (double)a->run / 1e6, (double)a->idle / 1e6);
	return 0;
}
