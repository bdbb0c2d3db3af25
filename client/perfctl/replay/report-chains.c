// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Call chains as indented trees. The caller view is the summed tree; the callee view is built from
 * it, with the sampled functions at the top and their callers below.
 */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/replay/report.h"

/* A tree to print; children are in a list, the heaviest first once sorted. */
struct branch {
	const char *comm;
	const struct frame *frame;
	uint64_t total, self;
	uint32_t parent; /* index; of the root: itself */
	struct branch *children, *next;
};

struct chains {
	struct branch **branches; /* 0: the root */
	size_t n, cap;
	struct hash hash;
};

static struct branch *new_branch(struct chains *c, uint32_t parent, const char *comm,
				 const struct frame *frame)
{
	struct branch *b;

	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 64;
		struct branch **bigger = reallocarray(c->branches, cap, sizeof(*bigger));

		if (!bigger)
			return NULL;
		c->branches = bigger;
		c->cap = cap;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct branch){ .comm = comm, .frame = frame, .parent = parent };
	c->branches[c->n++] = b;
	return b;
}

/* Goes from branch `at` to its child, and creates the child if it is new. -ENOMEM. */
static int64_t descend(struct chains *c, uint32_t at, const char *comm, const struct frame *frame)
{
	uint32_t hash = hash_numbers(at, frame ? (uintptr_t)frame : (uintptr_t)comm), i;
	struct branch *b;

	for (size_t pos = hash; hash_next(&c->hash, hash, &pos, &i);) {
		b = c->branches[i];
		if (b->parent == at && b->comm == comm && b->frame == frame)
			return i;
	}
	i = (uint32_t)c->n;
	b = new_branch(c, at, comm, frame);
	if (!b || hash_add(&c->hash, hash, i) < 0)
		return -ENOMEM;
	b->next = c->branches[at]->children;
	c->branches[at]->children = b;
	return i;
}

/* Adds one stack, which ends at the sampled function: from there to the top, or the other way. */
static int add_stack(struct chains *c, const struct flame_node *leaf, bool callee)
{
	const struct flame_node *path[256];
	size_t n = 0;
	int64_t at = 0;

	for (const struct flame_node *up = leaf; up->parent && n < ARRAY_SIZE(path);
	     up = up->parent)
		path[n++] = up;
	c->branches[0]->total += leaf->self.period;
	for (size_t i = 0; i < n; i++) {
		const struct flame_node *node = path[callee ? i : n - 1 - i];

		at = descend(c, (uint32_t)at, node->comm, node->frame);
		if (at < 0)
			return -ENOMEM;
		c->branches[at]->total += leaf->self.period;
	}
	c->branches[at]->self += leaf->self.period;
	return 0;
}

static bool is_heavier(const struct branch *l, const struct branch *r)
{
	return l->total > r->total;
}

/* Merge sort, because there can be very many children. */
static struct branch *sort_list(struct branch *list)
{
	struct branch *half = list, *end, *sorted = NULL, **tail = &sorted;

	if (!list || !list->next)
		return list;
	for (end = list->next; end && end->next; end = end->next->next)
		half = half->next;
	end = half->next;
	half->next = NULL;
	list = sort_list(list);
	end = sort_list(end);
	while (list && end) {
		struct branch **from = is_heavier(end, list) ? &end : &list;

		*tail = *from;
		*from = (*from)->next;
		tail = &(*tail)->next;
	}
	*tail = list ?: end;
	return sorted;
}

static bool is_shown(const struct report *r, const struct branch *b, uint64_t whole)
{
	double limit = r->o->chain_limit >= 0	  ? r->o->chain_limit
		       : r->o->percent_limit >= 0 ? r->o->percent_limit
						  : 0.5;

	return report_percent(b->total, whole) >= limit;
}

static void print_branch(const struct report *r, const struct branch *b, uint64_t whole, int indent)
{
	const char *name = b->frame ? b->frame->symbol : b->comm;

	printf("%7.2f%%  %7.2f%%  %*s", report_percent(b->total, whole),
	       report_percent(b->self, whole), MIN(indent, 60) * 2, "");
	if (r->o->graph == GRAPH_CALLEE && !b->frame)
		fputs("by ", stdout);
	print_text(stdout, name, strlen(name));
	if (b->frame) {
		fputs("  (", stdout);
		print_text(stdout, b->frame->dso, strlen(b->frame->dso));
		putchar(')');
	}
	putchar('\n');
}

/* Does not indent an only child. The chains' depth bounds the recursion. */
static void print_below(const struct report *r, const struct branch *parent, uint64_t whole,
			int indent, size_t *left)
{
	for (const struct branch *b = parent->children; b && *left; b = b->next) {
		bool only = b->children && !b->children->next && !b->self;

		if (!is_shown(r, b, whole))
			break;
		(*left)--;
		print_branch(r, b, whole, indent);
		print_below(r, b, whole, only ? indent : indent + 1, left);
	}
}

static void print_chains(const struct report *r, const struct event_sum *e, struct chains *c)
{
	size_t left = r->o->top * 10;

	fputs("\nCall chains of ", stdout);
	print_text(stdout, e->event->name, strlen(e->event->name));
	puts(r->o->graph == GRAPH_CALLEE ? ", from the sampled function to its callers"
					 : ", callers first");
	printf("%8s  %8s  FUNCTION\n", "TOTAL", "SELF");
	for (size_t i = 0; i < c->n; i++)
		c->branches[i]->children = sort_list(c->branches[i]->children);
	print_below(r, c->branches[0], e->weight.period, 0, &left);
	if (!left)
		printf("          (no more than %" PRIu64 " lines; --top shows more)\n",
		       r->o->top * 10);
}

static void chains_done(struct chains *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->branches[i]);
	free(c->branches);
	hash_done(&c->hash);
}

int report_chains(const struct report *r, const struct event_sum *e)
{
	_cleanup_(chains_done) struct chains c = {};

	if (!new_branch(&c, 0, NULL, NULL))
		return -ENOMEM;
	for (const struct flame_node *n = flame_next(e->root); n; n = flame_next(n))
		if (n->self.samples && add_stack(&c, n, r->o->graph == GRAPH_CALLEE) < 0)
			return -ENOMEM;
	print_chains(r, e, &c);
	return 0;
}
