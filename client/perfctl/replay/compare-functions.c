// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions, from samples of CPU time. Samples count by call chain; only at the end each chain counts
 * for its functions. */
#include <string.h>

#include "client/perfctl/replay/compare-records-parts.h"

static int node_at(struct compare_records *r, size_t index, struct compare_node **ret)
{
	if (index >= r->n_nodes) {
		size_t n = MAX(index + 1, r->n_nodes * 2);
		struct compare_node *bigger = reallocarray(r->nodes, n, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + r->n_nodes, 0, (n - r->n_nodes) * sizeof(*bigger));
		r->nodes = bigger;
		r->n_nodes = n;
	}
	*ret = &r->nodes[index];
	return 0;
}

int compare_functions_add(struct compare_records *r, const struct compare_source *s,
			  const struct trace_record *record, uint32_t comm)
{
	uint64_t time = compare_time(s, record);
	struct compare_cell one = { .n = 1, .sum = time, .max = time };
	const struct flame_node *leaf;
	struct compare_node *node;

	if (!compare_slice(r->c, record->time, &one.slice))
		return 0;
	if (aggregate_add(r->tree, record, &leaf) < 0)
		return -ENOMEM;
	r->leaf = leaf;
	if (!leaf || !leaf->frame)
		return 0;
	if (node_at(r, leaf->index, &node) < 0)
		return -ENOMEM;
	node->comm = comm;
	node->complete = s->complete;
	return compare_series_add(&node->series, &one);
}

/* "memcpy", or "[unknown] in libc.so.6". */
static int name_of(struct compare_records *r, const struct frame *f, uint32_t *ret)
{
	char text[512];

	if (strcmp(f->symbol, "[unknown]"))
		return compare_name(r->c, f->symbol, ret);
	snprintf(text, sizeof(text), "[unknown] in %s", f->dso);
	return compare_name(r->c, text, ret);
}

static int count(struct compare_records *r, enum compare_class class, const struct flame_node *at,
		 const struct compare_node *node, uint64_t depth)
{
	struct compare_item *item;
	uint32_t name;

	if (!at->frame->file) /* nothing is known of it */
		return 0;
	if (name_of(r, at->frame, &name) < 0 ||
	    compare_find(r->c, class, name, node->comm, node->complete, &item) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < node->series.n; i++) {
		if (compare_series_add(&item->series, &node->series.cells[i]) < 0)
			return -ENOMEM;
		item->depth += depth * node->series.cells[i].n;
	}
	return 0;
}

static bool is_recursion(const struct flame_node *node, const struct flame_node *leaf)
{
	for (const struct flame_node *n = leaf; n != node; n = n->parent)
		if (n->frame == node->frame)
			return true;
	return false;
}

static int spread(struct compare_records *r, size_t index)
{
	const struct flame_node *leaf = r->tree->nodes[index];
	const struct compare_node *node = &r->nodes[index];
	uint64_t depth = 0;
	int failed;

	for (const struct flame_node *n = leaf; n && n->frame; n = n->parent)
		depth++;
	failed = count(r, COMPARE_SELF, leaf, node, depth);
	for (const struct flame_node *n = leaf; n && n->frame && failed >= 0; n = n->parent) {
		if (!is_recursion(n, leaf))
			failed = count(r, COMPARE_TOTAL, n, node, depth);
		depth--;
	}
	return failed;
}

int compare_functions_finish(struct compare_records *r)
{
	int failed = 0;

	for (size_t i = 0; i < r->n_nodes && i < r->tree->n_nodes && failed >= 0; i++)
		if (r->nodes[i].series.n)
			failed = spread(r, i);
	return failed;
}
