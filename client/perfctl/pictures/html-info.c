// SPDX-License-Identifier: LGPL-2.1-or-later
/* The end of the page: the tree of call chains, and everything beside the records, as JSON: the
 * machine, CPUs, events, the tables of tasks and functions, losses. */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/pictures/html-internal.h"
#include "client/perfctl/pictures/process-tree.h"

/* The page's frame numbers: 0 is the root, then functions, then process names. */
static uint32_t frame_of(const struct flame_node *node, const struct aggregate *a, uint32_t comm)
{
	if (node->frame)
		return node->frame->index + 1;
	return node->comm ? (uint32_t)a->n_frames + 1 + comm : 0;
}

int html_write_nodes(struct html *h, const struct aggregate *a)
{
	_cleanup_(bytes_done) struct bytes block = {};

	bytes_number(&block, a ? a->n_nodes : 0);
	for (size_t i = 0; a && i < a->n_nodes; i++) {
		const struct flame_node *node = a->nodes[i];
		uint32_t comm = 0;
		int r = node->comm && !node->frame
				? texts_number(&h->comms, node->comm, strlen(node->comm), &comm)
				: 0;

		if (r < 0)
			return r;
		bytes_number(&block, node->parent ? i - node->parent->index : i + 1);
		bytes_number(&block, frame_of(node, a, comm));
	}
	return block_write(h->f, "id=\"nodes\"", &block);
}

static void json_time(struct json *j, const char *key, uint64_t ns)
{
	char text[32];

	/* Not all JSON readers hold nanoseconds in a number. */
	snprintf(text, sizeof(text), "%" PRIu64, ns);
	json_string(j, key, text);
}

static void json_texts(struct json *j, const char *key, const struct texts *t)
{
	json_begin(j, key, '[');
	for (size_t i = 0; i < t->n; i++) {
		size_t n;
		const char *text = texts_at(t, i, &n);

		json_bytes(j, NULL, text, n);
	}
	json_end(j, ']');
}

static void json_events(struct json *j, const struct html *h, const struct aggregate *a)
{
	json_begin(j, "events", '[');
	for (size_t i = 0; i < trace_events(h->trace); i++) {
		const struct trace_event *e = trace_event(h->trace, i);
		bool clock =
			e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CPU_CLOCK ||
							  e->config == PERF_COUNT_SW_TASK_CLOCK);

		json_begin(j, NULL, '{');
		json_string(j, "name", e->name);
		json_unsigned(j, "count", h->events[i].n);
		json_bool(j, "tracepoint", e->type == PERF_TYPE_TRACEPOINT);
		json_bool(j, "clock", clock);
		json_bool(j, "dummy",
			  e->type == PERF_TYPE_SOFTWARE && e->config == PERF_COUNT_SW_DUMMY);
		json_bool(j, "switch", h->events[i].next_pid);
		json_bool(j, "chains", a && i < a->n_events && a->events[i].has_chains);
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* [name, file (of dsos), kernel], numbered as in frame_of(). The file "" is a process. */
static int json_frames(struct json *j, const struct html *h, const struct aggregate *a)
{
	_cleanup_(texts_done) struct texts dsos = {};
	uint32_t dso;
	int r = texts_number(&dsos, "", 0, &dso);

	json_begin(j, "frames", '[');
	for (size_t i = 0; a && i <= a->n_frames + h->comms.n; i++) {
		const struct frame *f = i && i <= a->n_frames ? a->frames[i - 1] : NULL;
		const char *name = f ? f->symbol : "all";
		size_t n = strlen(name);

		if (i > a->n_frames)
			name = texts_at(&h->comms, i - a->n_frames - 1, &n);
		dso = 0;
		if (f && r >= 0) {
			const char *path = f->file ? f->file->path : f->dso;

			r = texts_number(&dsos, path, strlen(path), &dso);
		}
		json_begin(j, NULL, '[');
		json_bytes(j, NULL, name, n);
		json_unsigned(j, NULL, dso);
		json_bool(j, NULL, f && f->kernel);
		json_end(j, ']');
	}
	json_end(j, ']');
	json_texts(j, "dsos", &dsos);
	return r;
}

/* 0: none, as it has no record of its own. */
static size_t group_of(const struct task *task, const struct aggregate *a,
		       const struct process_tree *tree)
{
	uint32_t pid = task->guessed ? UINT32_MAX : task->pid;

	return a ? process_tree_group(tree, aggregate_process(a, pid, task->tid)) + 1 : 0;
}

/* pid, tid, name, group + 1 (of "tree") of each */
static void json_tasks(struct json *j, const struct tasks *t, const struct aggregate *a,
		       const struct process_tree *tree)
{
	json_begin(j, "tasks", '[');
	for (size_t i = 0; i < t->n; i++) {
		json_signed(j, NULL, (int32_t)t->all[i].pid);
		json_signed(j, NULL, (int32_t)t->all[i].tid);
		json_unsigned(j, NULL, t->all[i].comm);
		json_unsigned(j, NULL, group_of(&t->all[i], a, tree));
	}
	json_end(j, ']');
}

/* [name, group + 1 of the parent (0: none), processes] */
static void json_tree(struct json *j, const struct process_tree *tree)
{
	json_begin(j, "tree", '[');
	for (size_t i = 0; i < tree->n; i++) {
		const struct process_group *g = &tree->groups[i];

		json_begin(j, NULL, '[');
		json_string(j, NULL, g->comm);
		json_unsigned(j, NULL, g->parent == PROCESS_NO_PARENT ? 0 : g->parent + 1);
		json_unsigned(j, NULL, g->n);
		json_end(j, ']');
	}
	json_end(j, ']');
}

static int json_processes(struct json *j, const struct html *h, const struct aggregate *a)
{
	_cleanup_(process_tree_done) struct process_tree tree = {};

	if (a && process_tree_new(a, 0, &tree) < 0)
		return -ENOMEM;
	json_texts(j, "comms", &h->comms);
	json_tasks(j, &h->tasks, a, &tree);
	json_tree(j, &tree);
	return 0;
}

/* [ns since the first record, CPU, how many] */
static void json_lost(struct json *j, const struct html *h)
{
	json_unsigned(j, "lost_records", h->sum_lost);
	json_begin(j, "lost", '[');
	for (size_t i = 0; i < h->n_lost; i++) {
		json_begin(j, NULL, '[');
		json_signed(j, NULL, (int64_t)(h->lost[i].time - h->base));
		json_unsigned(j, NULL, MIN(h->lost[i].cpu, (uint32_t)HTML_NO_CPU));
		json_unsigned(j, NULL, h->lost[i].lost);
		json_end(j, ']');
	}
	json_end(j, ']');
}

static void json_history(struct json *j, const struct html *h, const struct trace_history *one,
			 size_t first, size_t n)
{
	json_begin(j, NULL, '{');
	json_unsigned(j, "first", first);
	json_unsigned(j, "n", n);
	json_signed(j, "from", (int64_t)(one->from - h->base));
	json_signed(j, "to", (int64_t)(one->to - h->base));
	json_begin(j, "cpus", '[');
	for (size_t i = 0; i < one->n_cpus; i++) {
		json_begin(j, NULL, '[');
		json_unsigned(j, NULL, MIN(one->cpus[i].cpu, (uint32_t)HTML_NO_CPU));
		json_signed(j, NULL, (int64_t)(one->cpus[i].from - h->base));
		json_end(j, ']');
	}
	json_end(j, ']');
	json_unsigned(j, "lost", one->lost);
	json_unsigned(j, "missed", one->missed);
	json_bool(j, "missed_at_least", one->missed_at_least);
	json_unsigned(j, "limited", one->limited);
	json_end(j, '}');
}

static void json_histories(struct json *j, const struct html *h)
{
	size_t n = trace_events(h->trace);

	json_begin(j, "histories", '[');
	for (size_t i = 0, end; i < n; i = end) {
		struct trace_history one = trace_history(h->trace, i);

		end = i + trace_history_events(h->trace, i);
		if (one.known)
			json_history(j, h, &one, i, end - i);
	}
	json_end(j, ']');
}

static void json_machine(struct json *j, const struct trace_info *info)
{
	json_string(j, "hostname", info->hostname);
	json_string(j, "release", info->release);
	json_string(j, "arch", info->arch);
	json_string(j, "cpudesc", info->cpudesc);
	json_string(j, "cmdline", info->cmdline ?: "");
	json_unsigned(j, "cpus_online", info->nr_cpus_online);
	json_time(j, "realtime_offset", info->realtime_offset);
}

static int json_all(struct json *j, const struct html *h, const struct aggregate *a,
		    const struct html_about *about)
{
	int r;

	json_begin(j, NULL, '{');
	json_string(j, "version", PP_VERSION);
	json_string(j, "what", about->what ?: "");
	json_string(j, "selected", about->selected ?: "");
	json_string(j, "damaged", about->damaged ?: "");
	json_machine(j, trace_info(h->trace));
	json_unsigned(j, "records", h->records);
	json_time(j, "base", h->base);
	json_unsigned(j, "nameless", h->nameless);
	json_bool(j, "about", h->has_about);
	json_begin(j, "cpus", '[');
	for (size_t i = 0; i < ARRAY_SIZE(h->cpus); i++)
		if (h->cpus[i])
			json_unsigned(j, NULL, i);
	json_end(j, ']');
	json_events(j, h, a);
	json_lost(j, h);
	json_histories(j, h);
	r = json_processes(j, h, a);
	if (r >= 0)
		r = json_frames(j, h, a);
	json_end(j, '}');
	return r;
}

int html_write_info(struct html *h, const struct aggregate *a, const struct html_about *about)
{
	_cleanup_(bytes_done) struct bytes block = {};
	struct json j = {};
	size_t size;
	char *text;
	int r;

	j.f = open_memstream(&text, &size);
	if (!j.f)
		return -ENOMEM;
	r = json_all(&j, h, a, about);
	if (fclose(j.f))
		r = -ENOMEM;
	bytes_add(&block, text, size);
	free(text);
	return r < 0 ? r : block_write(h->f, "id=\"info\"", &block);
}
