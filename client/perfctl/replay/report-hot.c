// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sums up the samples of a tree by process name, file and function, as perf's --sort does. With
 * --children a function also has the samples of the functions it called; each sample counts once,
 * however often the function is in its chain.
 */
#include <string.h>

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/replay/report.h"

struct sums {
	struct hot *hot;
	size_t cap;
	struct hash hash;
	unsigned sort;
};

static const void *place(const struct frame *f, unsigned sort)
{
	if (!f)
		return NULL;
	return sort & SORT_SYMBOL ? (const void *)f
	       : sort & SORT_DSO  ? (const void *)f->file
				  : NULL;
}

static bool same(const struct frame *a, const struct frame *b, unsigned sort)
{
	return !a == !b && place(a, sort) == place(b, sort);
}

/* who: the node of the process. */
static struct hot_row *row_of(struct sums *s, const struct flame_node *who,
			      const struct frame *frame)
{
	const char *name = s->sort & SORT_COMM ? who->comm : NULL;
	uint32_t hash = hash_numbers((uintptr_t)name ^ ((uint64_t)who->pid << 32 | who->tid),
				     (uintptr_t)place(frame, s->sort)),
		 i;
	struct hot *h = s->hot;

	for (size_t pos = hash; hash_next(&s->hash, hash, &pos, &i);)
		if (h->rows[i].comm == name && h->rows[i].pid == who->pid &&
		    h->rows[i].tid == who->tid && same(h->rows[i].frame, frame, s->sort))
			return &h->rows[i];
	if (h->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		struct hot_row *rows = reallocarray(h->rows, cap, sizeof(*rows));

		if (!rows)
			return NULL;
		h->rows = rows;
		s->cap = cap;
	}
	if (hash_add(&s->hash, hash, (uint32_t)h->n) < 0)
		return NULL;
	h->rows[h->n] =
		(struct hot_row){ .comm = name, .pid = who->pid, .tid = who->tid, .frame = frame };
	return &h->rows[h->n++];
}

/* Whether the same function is above it: its samples are counted there then. */
static bool is_recursion(const struct flame_node *node, unsigned sort)
{
	for (const struct flame_node *up = node->parent; up && up->frame; up = up->parent)
		if (same(up->frame, node->frame, sort))
			return true;
	return false;
}

static int add_node(struct sums *s, const struct flame_node *node, const struct flame_node *who,
		    bool children)
{
	bool inner = children && node->frame && !is_recursion(node, s->sort);
	struct hot_row *row;

	if (!node->self.samples && !inner)
		return 0;
	row = row_of(s, who, node->frame);
	if (!row)
		return -ENOMEM;
	row->self.samples += node->self.samples;
	row->self.period += node->self.period;
	if (inner || !node->frame) {
		row->total.samples += node->frame ? node->total.samples : node->self.samples;
		row->total.period += node->frame ? node->total.period : node->self.period;
	}
	return 0;
}

static int more(uint64_t l, uint64_t r)
{
	return l > r ? -1 : l < r;
}

static int by_name(const struct hot_row *l, const struct hot_row *r)
{
	int order = strcmp(l->comm ?: "", r->comm ?: "");

	order = order ?: more(r->pid, l->pid) ?: more(r->tid, l->tid);
	if (order || !l->frame || !r->frame)
		return order ?: !l->frame - !r->frame;
	order = strcmp(l->frame->dso, r->frame->dso);
	return order ?: strcmp(l->frame->symbol, r->frame->symbol);
}

/* total is 0 without children. */
static int hottest_first(const void *left, const void *right)
{
	const struct hot_row *l = left, *r = right;
	int order = more(l->total.period, r->total.period);

	order = order ?: more(l->self.period, r->self.period);
	order = order ?: more(l->self.samples, r->self.samples);
	return order ?: by_name(l, r);
}

int hot_new(const struct event_sum *e, unsigned sort, bool children, struct hot *ret)
{
	struct hot hot = {};
	struct sums s = { .hot = &hot, .sort = sort };
	const struct flame_node *who = e->root;
	int r = 0;

	for (const struct flame_node *n = flame_next(e->root); n && r >= 0; n = flame_next(n)) {
		if (n->comm)
			who = n;
		r = add_node(&s, n, who, children);
	}
	hash_done(&s.hash);
	if (r < 0) {
		free(hot.rows);
		return r;
	}
	for (size_t i = 0; !children && i < hot.n; i++)
		hot.rows[i].total = (struct weight){};
	if (hot.n)
		qsort(hot.rows, hot.n, sizeof(*hot.rows), hottest_first);
	*ret = hot;
	return 0;
}

void hot_done(struct hot *h)
{
	free(h->rows);
	*h = (struct hot){};
}
